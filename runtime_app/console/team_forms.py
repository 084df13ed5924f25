"""The forms of teams, absences and a person's own preferences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import Preferences, Team

_MOST = 1000  # characters a field takes before its own rule looks at it
Choices = Sequence[tuple[str, str]]


class TeamForm(forms.Form):
    ref = forms.CharField(
        label=gettext_lazy("Name of the team"), max_length=_MOST,
        help_text=gettext_lazy("Small letters, digits, - and _; policies name it by this, and it never changes."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class AddForm(forms.Form):
    username = forms.ChoiceField(label=gettext_lazy("Person"))

    def __init__(self, data: Any = None, *, team: Team, people: Choices) -> None:
        super().__init__(data, auto_id=f"id_{team.pk}_%s")
        self.team = team
        label = _("Person to add to %(team)s") % {"team": team.ref}
        self.fields["username"] = forms.ChoiceField(label=label, choices=[("", "—"), *people])


def _moment(label: Any) -> forms.CharField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"})
    return forms.CharField(label=label, max_length=_MOST, widget=widget)


class AbsenceForm(forms.Form):
    starts_at = _moment(gettext_lazy("From"))
    ends_at = _moment(gettext_lazy("Until"))
    substitute = forms.ChoiceField(label=gettext_lazy("Substitute"))
    note = forms.CharField(
        label=gettext_lazy("Note"), required=False, max_length=_MOST,
        help_text=gettext_lazy("Seen by the substitute and by administrators."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, data: Any = None, *, able: Choices, zone: str, people: Choices | None = None) -> None:
        super().__init__(data)
        self.fields["substitute"] = forms.ChoiceField(
            label=_("Substitute"), choices=[("", "—"), *able],
            help_text=_("Somebody who may decide here; decides what the absent person could, never more."),
        )
        self.fields["starts_at"].help_text = _("In %(zone)s.") % {"zone": zone}
        if people is not None:
            choices = [("", "—"), *people]
            self.fields = {"person": forms.ChoiceField(label=_("Who is away"), choices=choices), **self.fields}


def _time(label: Any) -> forms.TimeField:
    return forms.TimeField(
        label=label, required=False, input_formats=["%H:%M", "%H:%M:%S"],
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )


class PreferencesForm(forms.Form):
    mail = forms.BooleanField(label=gettext_lazy("Tell me by mail"), required=False)
    digest = forms.ChoiceField(
        label=gettext_lazy("How soon"), choices=[
            ("at_once", gettext_lazy("each at once")), ("hourly", gettext_lazy("together, once an hour")),
            ("daily", gettext_lazy("together, once a day at 8:00"))],
    )
    quiet_from = _time(gettext_lazy("Quiet from"))
    quiet_to = _time(gettext_lazy("Quiet until"))
    time_zone = forms.CharField(
        label=gettext_lazy("Time zone"), required=False, max_length=_MOST,
        help_text=gettext_lazy("In which times are shown to you, for example Europe/Berlin. Empty: your browser's."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "list": "zones"}),
    )

    @classmethod
    def of(cls, kept: Preferences, time_zone: str) -> PreferencesForm:
        return cls(initial={
            "mail": kept.mail, "digest": kept.digest, "quiet_from": kept.quiet_from, "quiet_to": kept.quiet_to,
            "time_zone": time_zone,
        })
