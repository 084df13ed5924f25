"""What people type, read strictly: amounts in major units become minor units here, and nowhere else."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors
from runtime_app.models import Task
from runtime_app.money import decimal_text, parse_decimal
from runtime_app.texts import check_ref, check_text

_MOST = 2000  # characters a field takes before its own rule looks at it


def _prose(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows})


def show_refusal(form: forms.Form, refused: FieldErrors) -> None:
    """Put what was refused beside the fields it names; what names no shown field stands above the form."""
    for name, sentence in refused.errors.items():
        form.add_error(name if name in form.fields and not form.fields[name].widget.is_hidden else None, sentence)


class OrderForm(forms.Form):
    order_ref = forms.CharField(
        label=_("Order"), max_length=_MOST, help_text=_("As the order system writes it."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_order_ref(self) -> str:
        try:
            return check_ref(self.cleaned_data["order_ref"], "order_ref")
        except FieldErrors as refused:
            raise forms.ValidationError(list(refused.errors.values())) from refused


class RefundForm(forms.Form):
    """`nonce` is the request's key; `seen` is the balance the person saw when the page was rendered."""

    order_ref = forms.CharField(max_length=_MOST, widget=forms.HiddenInput)
    nonce = forms.CharField(max_length=_MOST, widget=forms.HiddenInput)
    seen = forms.CharField(max_length=_MOST, widget=forms.HiddenInput)
    payment_ref = forms.CharField(label=_("Payment"), max_length=_MOST)
    amount = forms.CharField(
        label=_("Amount"), max_length=_MOST, strip=False, help_text=_("At most what can be refunded of the payment."),
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=_MOST, help_text=_("Whoever has to agree reads this."), widget=_prose(2)
    )

    def minor(self, currency: str) -> int:
        """The amount in minor units; FieldErrors naming `amount`."""
        return parse_decimal(self.cleaned_data["amount"], currency, "amount")


def new_nonce() -> str:
    return secrets.token_urlsafe(24)


class AmendForm(forms.Form):
    revision = forms.IntegerField(widget=forms.HiddenInput)
    amount = forms.CharField(
        label=_("Amount"), max_length=_MOST, required=False, strip=False,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    reason = forms.CharField(label=_("Reason"), max_length=_MOST, required=False, widget=_prose(2))
    prefix = "amend"

    @classmethod
    def of(cls, task: Task) -> AmendForm:
        known = task.amount_minor is not None and task.currency in EXPONENTS
        shown = decimal_text(task.amount_minor, task.currency) if known else ""  # type: ignore[arg-type]  # `known` says it
        return cls(initial={"revision": task.revision, "amount": shown, "reason": task.reason or ""})

    def changes(self, task: Task) -> dict[str, Any]:
        """Only what differs from the task; FieldErrors naming `amount` or `reason`."""
        changed: dict[str, Any] = {"amount_minor": None, "reason": None}
        typed = self.cleaned_data["amount"]
        if typed.strip():
            if not task.currency:
                raise FieldErrors({"amount": "Give the missing input first; the currency is not known yet."})
            minor = parse_decimal(typed, task.currency, "amount")
            changed["amount_minor"] = minor if minor != task.amount_minor else None
        reason = check_text(self.cleaned_data["reason"], "reason", most=500).strip()
        if reason and reason != (task.reason or ""):
            changed["reason"] = reason
        if changed["amount_minor"] is None and changed["reason"] is None:
            raise FieldErrors({"amount": "Nothing differs from the request as it stands."})
        return changed


class CancelForm(forms.Form):
    reason = forms.CharField(label=_("Why it is cancelled"), max_length=_MOST, widget=_prose(2))
    prefix = "cancel"


class InputForm(forms.Form):
    """Made from what the task waits for: one field for each, with the sentence that asks for it."""

    revision = forms.IntegerField(widget=forms.HiddenInput)
    prefix = "input"

    def __init__(self, *args: Any, asked: Mapping[str, Any], task: Task, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked, self.task = asked, task
        for name, sentence in sorted(asked.items(), key=lambda item: _ORDER.get(item[0], 9)):
            label = _LABELS.get(name, _("Answer"))
            help_text = _HELP[name] if name in _HELP and getattr(task, name) is None else str(sentence)
            widget = _prose(3) if name not in _LABELS else forms.TextInput(attrs={"autocomplete": "off"})
            self.fields[name] = forms.CharField(
                label=label, max_length=_MOST, help_text=help_text, widget=widget, strip=name != "amount_minor"
            )

    def given(self) -> dict[str, Any]:
        """The fields as the task wants them; FieldErrors for an amount that cannot be read."""
        values = {name: self.cleaned_data[name] for name in self.asked}
        if "amount_minor" in values:
            currency = values.get("currency") or self.task.currency
            if currency not in EXPONENTS:
                raise FieldErrors({"currency": "Use an ISO 4217 currency code in capitals, for example EUR."})
            values["amount_minor"] = parse_decimal(values["amount_minor"], currency, "amount_minor")
        return values


_ORDER = {"amount_minor": 0, "currency": 1, "payment_ref": 2, "on_behalf_of": 3}
_LABELS = {
    "amount_minor": _("Amount"),
    "currency": _("Currency"),
    "payment_ref": _("Payment"),
    "on_behalf_of": _("Person behind the request"),
}
_HELP = {
    "amount_minor": _("How much is to go back, for example 48.21."),
    "currency": _("The ISO code of the order's currency, for example EUR."),
}


def _password() -> forms.CharField:
    return forms.CharField(
        label=_("Your password, once more"), max_length=4096, required=False, strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        help_text=_("The policy asks for it to approve this amount."),
    )


class _WithPassword(forms.Form):
    use_required_attribute = False  # to reject needs no password

    def need_password(self) -> None:
        """Show it as a field that has to be filled in."""
        self.fields["password"].required = True


class TogetherForm(_WithPassword):
    """One word for a whole selection."""

    reason = forms.CharField(
        label=_("Reason"), max_length=_MOST, required=False, widget=_prose(3),
        help_text=_("Needed to reject; it is written to each of them."),
    )
    password = _password()


class DecisionForm(_WithPassword):
    """The hidden inputs bind the decision to the exact question that was read."""

    revision = forms.IntegerField(widget=forms.HiddenInput)
    fingerprint = forms.CharField(max_length=_MOST, widget=forms.HiddenInput)
    approval = forms.CharField(max_length=_MOST, widget=forms.HiddenInput)
    nonce = forms.CharField(max_length=_MOST, widget=forms.HiddenInput)
    reason = forms.CharField(
        label=_("Reason"), max_length=_MOST, required=False, widget=_prose(3),
        help_text=_("Needed to reject or to ask for input; the requester reads it."),
    )
    password = _password()
