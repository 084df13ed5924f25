"""The forms of a case: each carries what the person saw, and is read strictly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runtime_app.currencies import EXPONENTS
from runtime_app.desk import verbs
from runtime_app.desk.actions import Offer
from runtime_app.desk.situation import Situation
from runtime_app.models import Case, Task, User
from runtime_app.money import decimal_text, parse_decimal

_MOST = 3000  # characters a field takes before its own rule looks at it


class CaseForm(forms.Form):
    """`revision` and `seen_sha256` bind it to the case as it was read. An action with nothing to fill in is this."""

    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=2**31 - 1)
    seen_sha256 = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, offer: Offer, s: Situation, people: Sequence[User] = ()) -> None:
        first = {"revision": s.case.revision, "seen_sha256": s.evidence_sha256}
        super().__init__(data, prefix=offer.name, initial=first)
        self.offer, self.s = offer, s
        self.prepare(people)

    def prepare(self, people: Sequence[User]) -> None:
        """Fill in what depends on the case."""

    def given(self) -> dict[str, Any]:
        """What the verb takes; FieldErrors for what cannot be read."""
        return dict(self.cleaned_data)


_WHY = gettext_lazy("Why")


def _prose(help_text: Any = "", label: Any = _WHY) -> forms.CharField:
    return forms.CharField(
        label=label, max_length=_MOST, help_text=help_text, widget=forms.Textarea(attrs={"rows": 2})
    )


class ReasonForm(CaseForm):
    reason = _prose(gettext_lazy("It stays in the history of the case."))


class AttachForm(CaseForm):
    ref = forms.CharField(
        label=gettext_lazy("The provider's id of the refund"), max_length=_MOST,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class ChosenForm(CaseForm):
    """A word out of the offer's, and why. The second of two people is offered what the first one chose."""

    name, label = "outcome", gettext_lazy("What became of it")

    def prepare(self, people: Sequence[User]) -> None:
        choices = dict(self.offer.choices)
        if self.offer.second and self.s.declaration is not None:
            choices = {self.s.declaration.code: choices.get(self.s.declaration.code, self.s.declaration.code)}
        chosen = next(iter(choices), "") if len(choices) == 1 else None
        self.fields = {
            self.name: forms.ChoiceField(
                label=self.label, choices=list(choices.items()), widget=forms.RadioSelect, initial=chosen
            ),
            "reason": _prose(gettext_lazy("It stays in the history of the case.")), **self.fields,
        }


class DeclareForm(ChosenForm):
    name, label = "code", gettext_lazy("What it rests on")


class CompensateForm(CaseForm):
    amount = forms.CharField(
        label=gettext_lazy("Amount"), max_length=_MOST, strip=False,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    reason = _prose(gettext_lazy("Whoever has to approve it reads this."))

    def prepare(self, people: Sequence[User]) -> None:
        if self.currency in EXPONENTS:
            self.fields["amount"].initial = decimal_text(self.s.most_minor, self.currency)
            self.fields["amount"].help_text = _("In %(currency)s, at most %(most)s.") % {
                "currency": self.currency, "most": decimal_text(self.s.most_minor, self.currency)}

    @property
    def currency(self) -> str:
        return self.s.operation.currency if self.s.operation is not None else ""

    def given(self) -> dict[str, Any]:
        given = dict(self.cleaned_data)
        return given | {"amount_minor": parse_decimal(given.pop("amount"), self.currency, "amount")}


_NOBODY = ":"  # no username can be this


class AssignForm(CaseForm):
    to = forms.ChoiceField(label=gettext_lazy("Person"))

    def prepare(self, people: Sequence[User]) -> None:
        named = [(p.username, p.shown_name) for p in people if p.pk not in self.s.parties]
        self.fields["to"] = forms.ChoiceField(
            label=gettext_lazy("Person"), choices=[(_NOBODY, _("nobody")), *named],
            initial=self.s.case.owner.username if self.s.case.owner else _NOBODY,
        )

    def given(self) -> dict[str, Any]:
        named = self.cleaned_data["to"]
        return dict(self.cleaned_data) | {"to": None if named == _NOBODY else named}


class SnoozeForm(CaseForm):
    until = forms.DateField(
        label=gettext_lazy("Until"), help_text=gettext_lazy("Its deadline stays what it is."),
        widget=forms.DateInput(attrs={"type": "date"}), input_formats=["%Y-%m-%d"],
    )

    def prepare(self, people: Sequence[User]) -> None:
        self.fields["until"].required = not self.s.snoozed  # without a day it is taken up again


class CommentForm(CaseForm):
    text = _prose(label=gettext_lazy("What others should know"))


FORMS: Mapping[str, type[CaseForm]] = {
    "query_now": CaseForm, "attach": AttachForm, "record_as_found": DeclareForm, "acknowledge": ReasonForm,
    "declare_not_executed": DeclareForm, "cancel_at_provider": ReasonForm, "start_compensation": CompensateForm,
    "close": ChosenForm, "assign": AssignForm, "snooze": SnoozeForm, "comment": CommentForm,
}
VERBS: Mapping[str, Callable[..., Case | Task]] = {
    "query_now": verbs.query_now, "attach": verbs.attach, "record_as_found": verbs.record_as_found,
    "acknowledge": verbs.acknowledge, "declare_not_executed": verbs.declare_not_executed,
    "cancel_at_provider": verbs.cancel_at_provider, "start_compensation": verbs.start_compensation,
    "close": verbs.close, "assign": verbs.assign, "snooze": verbs.snooze, "comment": verbs.comment,
}
# What stands in the address of each.
ADDRESSES: Mapping[str, str] = {
    "query_now": "query", "attach": "attach", "record_as_found": "record", "acknowledge": "acknowledge",
    "declare_not_executed": "declare", "cancel_at_provider": "cancel", "start_compensation": "compensate",
    "close": "close", "assign": "assign", "snooze": "snooze", "comment": "comment",
}
