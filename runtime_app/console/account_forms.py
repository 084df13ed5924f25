"""The forms of a tenant's accounts at providers. Secrets are written only: no page shows one again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runtime_app import account_changes
from runtime_app.account_changes import Wanted
from runtime_app.models import Account

_MOST = 1000  # characters a field takes before its own rule looks at it


def _line(label: Any, help_text: Any = "", required: bool = False) -> forms.CharField:
    return forms.CharField(
        label=label, help_text=help_text, required=required, max_length=_MOST,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


def _secret(label: Any, help_text: Any = "", required: bool = False) -> forms.CharField:
    return forms.CharField(
        label=label, help_text=help_text, required=required, max_length=_MOST, strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}, render_value=False),
    )


_SETTINGS: dict[str, tuple[Any, Any, bool]] = {  # the label, the hint, and whether it must be given
    "debtor_iban": (_("IBAN of the account that pays"), "", True),
    "debtor_name": (_("Name of its holder"), _("As the bank has it, at most 70 characters."), True),
    "debtor_bic": (_("BIC of the bank"), "", True),
    "debtor_currency": (
        _("Currency of the account"), _("Its ISO 4217 code; statements in another are refused."), False),
}


class AccountForm(forms.Form):
    """What an account is; `seen_sha256` binds a change to what was read, and is empty for a new one."""

    seen_sha256 = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    mode = forms.ChoiceField(
        label=_("Mode"), choices=[("test", _("test")), ("live", _("live: real money"))],
        help_text=_("An account goes live only with an API key and a notice secret."),
    )
    base_url = _line(_("Address of the provider"), _(
        "Empty: the provider's own. A bank has none of its own. With another address the API key is to be given anew."))
    time_zone = _line(_("Time zone of the provider"), _("Its days begin there, for example Europe/Berlin."), True)
    is_default = forms.BooleanField(
        label=_("Default account"), required=False, help_text=_("Payments that name no account are at this one."),
    )

    def __init__(self, data: Any = None, *, provider: str, account: Account | None = None) -> None:
        super().__init__(data, initial=_initial(account))
        names = account_changes.settings_of(provider)
        for name in names:
            self.fields[name] = _line(*_SETTINGS[name])
        self.provider, self.names = provider, names

    def wanted(self) -> Wanted:
        said = self.cleaned_data
        return Wanted(
            mode=said["mode"], base_url=said["base_url"], time_zone=said["time_zone"], is_default=said["is_default"],
            settings={name: said[name] for name in self.names},
        )


def _initial(account: Account | None) -> dict[str, Any]:
    if account is None:
        return {"mode": "test", "time_zone": "UTC"}
    return {
        **account.settings, "mode": account.mode, "base_url": account.base_url, "time_zone": account.time_zone,
        "is_default": account.is_default, "seen_sha256": account_changes.state_sha256(account),
    }


class NewAccountForm(AccountForm):
    """The same with a name, its provider, and perhaps its secrets."""

    provider = forms.CharField(max_length=40, widget=forms.HiddenInput)  # type: ignore[assignment]  # a field here
    ref = _line(_("Name"), _("Small letters, digits, - and _; orders name it by this, and it never changes."), True)
    api_key = _secret(_("API key"), _("Stored sealed and never shown again."))
    notice_secret = _secret(_("Notice secret"), _("What the provider signs its notices with."))
    field_order = ["ref", "mode", "base_url", "time_zone"]

    def __init__(self, data: Any = None, *, provider: str) -> None:
        super().__init__(data, provider=provider)
        self.fields["provider"].initial = provider


class SeenForm(forms.Form):
    seen_sha256 = forms.CharField(max_length=64, widget=forms.HiddenInput)


class KeyForm(SeenForm):
    api_key = _secret(_("New API key"), _("The old one is forgotten at once."), True)


class SecretForm(SeenForm):
    notice_secret = _secret(
        _("New notice secret"), _("The one before it stays good until you drop it, so that no notice is lost."), True
    )
