"""The forms of statement days: a file that somebody brings, and the closing of a day as it was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runtime_app.models import Account


class UploadForm(forms.Form):
    """A statement file. Without an `account` of its own it asks which of `accounts` it is of."""

    account = forms.ChoiceField(label=_("Account"))
    file = forms.FileField(
        label=_("Statement file"), allow_empty_file=True, max_length=255,
        error_messages={"required": _("Choose the file."), "missing": _("Choose the file.")},
        help_text=_("A camt.053 file of one day, of at most 20 MB. It is taken as a whole or not at all."),
    )

    def __init__(self, *args: Any, accounts: Sequence[Account], one: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(str(account.pk), account.ref) for account in accounts]
        self.fields["account"] = forms.ChoiceField(
            label=_("Account"), choices=choices, initial=choices[0][0] if choices else None,
            widget=forms.HiddenInput if one else forms.Select,
        )


class CloseForm(forms.Form):
    """`seen_sha256` is the digest of the day as it was read."""

    seen_sha256 = forms.CharField(max_length=64, widget=forms.HiddenInput)
