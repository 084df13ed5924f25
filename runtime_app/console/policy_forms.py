"""The forms of a policy. Each field is named by its place in the rules, so that what is refused stands beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.rules import ANY, IN_ORDER, IN_PARALLEL, QUORUM_MOST
from runtime_app.console import policy_draft
from runtime_app.console.context import role_word
from runtime_app.console.policy_draft import LIMITS, ROWS_MOST, Draft, count
from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors
from runtime_app.money import MAX_MINOR, parse_decimal
from runtime_app.roles import ROLES

_MOST = 2000  # characters a field takes before its own rule looks at it
_LAST_MINUTE = "23:59:59.999999"  # how the rules write the end of the day
Choices = Sequence[tuple[str, str]]


def _line(label: Any, help_text: Any = "", **attrs: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", **attrs})
    return forms.CharField(label=label, help_text=help_text, required=False, max_length=_MOST, widget=widget)


def _some(label: Any, choices: Choices) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=label, choices=choices, required=False, widget=forms.CheckboxSelectMultiple)


def _number(label: Any, help_text: Any = "") -> forms.FloatField:
    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
    return forms.FloatField(label=label, help_text=help_text, required=False, widget=widget)


class PolicyForm(forms.Form):
    """A draft of the rules. Unbound it shows the draft as it is; bound it is checked."""

    def __init__(self, draft: Draft, *, bound: bool, teams: Choices, people: Choices) -> None:
        super().__init__(draft if bound else None, initial=draft)
        self.draft, self.teams, self.people = draft, teams, people
        self.reviews = max(policy_draft.reviews(draft), 0)
        self.fields["base"] = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=2**31 - 1)
        for n in range(self.reviews):
            self._add_review(f"reviews.{n}")
        self._add_rest()
        self._who("escalate_to")
        for name in LIMITS:
            self._limits(name)
        self.fields["why"] = forms.CharField(
            label=gettext_lazy("Why it changes"), max_length=_MOST, required=False,  # needed to propose, not to look
            help_text=gettext_lazy("The second person reads this, and it stays in the history."),
            widget=forms.Textarea(attrs={"rows": 2}),
        )

    # Which fields there are.

    def _add_review(self, place: str) -> None:
        self.fields[f"{place}.name"] = _line(_("Name of the review"), _("A short word, such as risk or finance."))
        self.fields[f"{place}.name"].required = True
        self.fields[f"{place}.quorum"] = forms.IntegerField(
            label=_("How many people must agree"), min_value=1, max_value=QUORUM_MOST,
            widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
        )
        self._limits(f"{place}.above")
        self._who(f"{place}.who")

    def _add_rest(self) -> None:
        order = [(IN_PARALLEL, _("all at the same time")), (IN_ORDER, _("one after another, as they stand here"))]
        self.fields["order"] = forms.ChoiceField(label=_("Reviews are asked"), choices=order)
        kinds = [("elapsed", _("so many hours")), ("working", _("so many working hours")),
                 ("end_of_day", _("until the end of a day"))]
        self.fields["term.kind"] = forms.ChoiceField(label=_("People have"), choices=kinds)
        self.fields["term.hours"] = _number(_("Hours (for the first two)"))
        self.fields["term.days"] = forms.IntegerField(
            label=_("Days later (0: the same)"), required=False, min_value=0, max_value=366,
            widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
        )
        self.fields["term.working_days"] = forms.BooleanField(label=_("Count working days only"), required=False)
        days = [(str(n), str(WEEKDAYS[n])) for n in range(7)]
        self.fields["hours.days"] = _some(_("Working days"), days)
        self.fields["hours.opens"] = _line(_("From"), placeholder="09:00")
        self.fields["hours.closes"] = _line(_("To (00:00: the day's end)"), placeholder="17:00")
        self.fields["hours.holidays"] = forms.CharField(
            label=_("Days off"), help_text=_("One on each line, as 2026-12-25."), required=False, max_length=_MOST,
            widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        )
        self.fields["remind"] = _number(_("Remind, hours before the end"), _("0 or empty: nobody is reminded."))
        self.fields["escalate"] = _number(_("Escalate, hours before the end"), _("0 or empty: it is not escalated."))

    def _who(self, place: str) -> None:
        self.fields[f"{place}.anyone"] = forms.BooleanField(label=_("Everybody who may decide"), required=False)
        self.fields[f"{place}.teams"] = _some(_("Teams"), self.teams)
        self.fields[f"{place}.people"] = _some(_("People by name"), self.people)
        roles = [("", "—"), *((name, role_word(name)) for name in ROLES)]
        for n in range(count(self.draft, f"{place}.roles", "name", ROWS_MOST)):
            self.fields[f"{place}.roles.{n}.name"] = forms.ChoiceField(label=_("Role"), choices=roles, required=False)
            self._limits(f"{place}.roles.{n}.up_to")

    def _limits(self, place: str) -> None:
        for n in range(count(self.draft, place, "currency", ROWS_MOST)):
            self.fields[f"{place}.{n}.currency"] = _line(_("Currency"), placeholder="EUR", list="currencies")
            self.fields[f"{place}.{n}.amount"] = _line(_("Amount"), inputmode="decimal")
        self.fields[f"{place}.any"] = _line(_("Other currencies, minor units"), inputmode="numeric")

    # The draft as rules.

    def rules(self) -> dict[str, Any]:
        """The rules as JSON; FieldErrors by field for what cannot be read."""
        errors: dict[str, str] = {}
        said = self.cleaned_data
        term = {
            "kind": said["term.kind"], "hours": said["term.hours"] or 0, "days": said["term.days"] or 0,
            "working_days": said["term.working_days"],
        }
        rules = {
            "reviews": [self._review_said(f"reviews.{n}", errors) for n in range(self.reviews)],
            "order": said["order"] or IN_PARALLEL, "term": term, "hours": self._hours_said(),
            "remind": said["remind"] or 0, "escalate": said["escalate"] or 0,
            "escalate_to": self._who_said("escalate_to", errors),
            **{name: self._limits_said(name, errors) for name in LIMITS},
        }
        if errors:
            raise FieldErrors(errors)
        return rules

    def _review_said(self, place: str, errors: dict[str, str]) -> dict[str, Any]:
        said = self.cleaned_data
        return {
            "name": said[f"{place}.name"], "quorum": said[f"{place}.quorum"] or 0,
            "above": self._limits_said(f"{place}.above", errors), "who": self._who_said(f"{place}.who", errors),
        }

    def _hours_said(self) -> dict[str, Any]:
        said, closes = self.cleaned_data, self.cleaned_data["hours.closes"]
        hours = {"days": [int(day) for day in said["hours.days"]], "holidays": said["hours.holidays"].split()}
        times = {"opens": said["hours.opens"], "closes": _LAST_MINUTE if closes in ("00:00", "24:00") else closes}
        return hours | {name: value for name, value in times.items() if value}

    def _who_said(self, place: str, errors: dict[str, str]) -> dict[str, Any]:
        said = self.cleaned_data
        rows = range(count(self.draft, f"{place}.roles", "name", ROWS_MOST))
        roles = [
            {"name": name, "up_to": self._limits_said(f"{place}.roles.{n}.up_to", errors)}
            for n in rows if (name := said[f"{place}.roles.{n}.name"])
        ]
        return {
            "roles": roles, "teams": said[f"{place}.teams"], "people": said[f"{place}.people"],
            "anyone": said[f"{place}.anyone"],
        }

    def _limits_said(self, place: str, errors: dict[str, str]) -> dict[str, int]:
        said, found = self.cleaned_data, {}
        for n in range(count(self.draft, place, "currency", ROWS_MOST)):
            row = f"{place}.{n}"
            code, amount = said[f"{row}.currency"].strip(), said[f"{row}.amount"].strip()
            if not code and not amount:
                continue
            try:
                if code in found:
                    raise FieldErrors({f"{row}.currency": _("This currency stands here already.")})
                if code not in EXPONENTS:
                    raise FieldErrors({f"{row}.currency": _("Use an ISO 4217 code in capitals, for example EUR.")})
                found[code] = _amount(amount, code, f"{row}.amount")
            except FieldErrors as refused:
                errors |= refused.errors
        if typed := said[f"{place}.any"].strip():
            if typed.isascii() and typed.isdigit() and len(typed) <= 16 and int(typed) <= MAX_MINOR:
                found[ANY] = int(typed)
            else:
                errors[f"{place}.any"] = _("Write a whole number of minor units, for example 5000.")
        return found

    # Where a refusal stands.

    def show(self, refused: FieldErrors) -> None:
        """Put each sentence beside the field of its place, or of the nearest place around it."""
        for place, sentence in refused.errors.items():
            self.add_error(self._field_at(place), sentence)

    def _field_at(self, place: str) -> str | None:
        head, _dot, last = place.rpartition(".")
        for n in range(count(self.draft, head, "currency", ROWS_MOST) if head else 0):
            if str(self.draft.get(f"{head}.{n}.currency", "")).strip() == last:
                return f"{head}.{n}.amount"
        if last == ANY:
            return f"{head}.any" if f"{head}.any" in self.fields else None
        while place:
            for name in (place, f"{place}.name", f"{place}.anyone", f"{place}.kind", f"{place}.any"):
                if name in self.fields:
                    return name
            place = place.rpartition(".")[0]
        return None

    # The form in the order of the page.

    def blocks(self) -> list[dict[str, Any]]:
        return [
            {
                "place": f"reviews.{n}", "number": n + 1, "name": self[f"reviews.{n}.name"],
                "quorum": self[f"reviews.{n}.quorum"], "above": self.limit_block(f"reviews.{n}.above"),
                "who": self.who_block(f"reviews.{n}.who"),
            }
            for n in range(self.reviews)
        ]

    def who_block(self, place: str) -> dict[str, Any]:
        rows = range(count(self.draft, f"{place}.roles", "name", ROWS_MOST))
        return {
            "place": f"{place}.roles", "anyone": self[f"{place}.anyone"], "teams": self[f"{place}.teams"],
            "people": self[f"{place}.people"],
            "roles": [
                {"name": self[f"{place}.roles.{n}.name"], "up_to": self.limit_block(f"{place}.roles.{n}.up_to")}
                for n in rows
            ],
        }

    def limit_block(self, place: str) -> dict[str, Any]:
        rows = range(count(self.draft, place, "currency", ROWS_MOST))
        fields = [{"currency": self[f"{place}.{n}.currency"], "amount": self[f"{place}.{n}.amount"]} for n in rows]
        shown: Iterable[Any] = [field for row in fields for field in row.values()]
        any_other = self[f"{place}.any"]
        return {
            "place": place, "rows": fields, "any": any_other,
            "open": any(field.value() or field.errors for field in [*shown, any_other]),
        }

    @property
    def escalate_to(self) -> dict[str, Any]:
        return self.who_block("escalate_to")

    @property
    def bounds(self) -> list[dict[str, Any]]:
        """The three limits that concern every review."""
        return [self.limit_block(name) | {"title": title, "text": text} for name, (title, text) in _BOUNDS.items()]

    def named(self) -> dict[str, Any]:
        """The single fields by a name that a template can say."""
        return {name.replace(".", "_"): self[name] for name in (
            "order", "term.kind", "term.hours", "term.days", "term.working_days", "hours.days", "hours.opens",
            "hours.closes", "hours.holidays", "remind", "escalate", "why")}


_BOUNDS = {
    "password_above": (
        gettext_lazy("Password"), gettext_lazy("Who approves more than this gives the password again.")),
    "bulk_up_to": (
        gettext_lazy("Deciding together"),
        gettext_lazy("Up to this several requests may be decided at once. Without an amount none may.")),
    "forbidden_above": (
        gettext_lazy("Never"), gettext_lazy("More than this is refused without asking anybody.")),
}


def _amount(text: str, currency: str, field: str) -> int:
    """Minor units; zero is an amount here, unlike in a refund."""
    return 0 if text.replace(".", "", 1).strip("0") == "" and text[:1] == "0" else parse_decimal(text, currency, field)


class SeenForm(forms.Form):
    """`number` is the version that the person read."""

    number = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=2**31 - 1)


class RefuseForm(SeenForm):
    why = forms.CharField(
        label=gettext_lazy("Why not"), max_length=_MOST, required=False,
        help_text=gettext_lazy("It stays in the history of the policy."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )


class TryForm(forms.Form):
    """What the simulator is asked. It changes nothing, so it is sent by GET."""

    amount = forms.CharField(
        label=gettext_lazy("Amount"), max_length=_MOST,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    currency = forms.CharField(
        label=gettext_lazy("Currency"), max_length=_MOST,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "list": "currencies"}),
    )
    requester = forms.ChoiceField(label=gettext_lazy("Asked for by"), required=False)
    at = forms.CharField(
        label=gettext_lazy("Asked on"), required=False, max_length=_MOST,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )

    def __init__(self, data: Any, *, people: Choices, zone: str) -> None:
        super().__init__(data)
        self.fields["requester"] = forms.ChoiceField(
            label=_("Asked for by"), required=False, choices=[("", _("somebody else than those who decide")), *people])
        self.fields["at"].help_text = _("In %(zone)s. Empty: now.") % {"zone": zone}
