"""What people type about an approval besides its decision."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

_MOST = 5000  # characters a field takes before its own rule looks at it


class CommentForm(forms.Form):
    text = forms.CharField(
        label=gettext_lazy("Comment"), max_length=_MOST, widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("Everybody who sees this approval reads it. It decides nothing."),
    )


class HandOverForm(forms.Form):
    to = forms.ChoiceField(label=gettext_lazy("To"))
    text = forms.CharField(
        label=gettext_lazy("Word to them"), max_length=_MOST, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    prefix = "over"

    def __init__(self, *args: object, people: Sequence[tuple[str, str]], **kwargs: object) -> None:
        self.people = people
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # Django's own signature, passed on
        self.fields["to"].choices = [("", _("choose…")), *people]  # type: ignore[attr-defined]  # a choice field


class SnoozeForm(forms.Form):
    """`until` is a name of `AHEAD`, so that no clock of the reader's has to be parsed."""

    until = forms.ChoiceField(label=gettext_lazy("Put it away until"))
    prefix = "snooze"

    def __init__(self, *args: object, now: datetime, deadline: datetime, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # Django's own signature, passed on
        self.fields["until"].choices = ahead(now, deadline)  # type: ignore[attr-defined]  # a choice field


def ahead(now: datetime, deadline: datetime) -> list[tuple[str, str]]:
    """The times until which one may put it away, each before the deadline."""
    words = {
        "hour": _("in one hour"), "four": _("in four hours"), "morning": _("tomorrow, 9:00"),
        "days": _("in three days"),
    }
    return [(name, word) for name, word in words.items() if moment(name, now) < deadline]


def moment(name: str, now: datetime) -> datetime:
    """The time of this name; ValueError for another. The morning is the reader's."""
    match name:
        case "hour":
            return now + timedelta(hours=1)
        case "four":
            return now + timedelta(hours=4)
        case "days":
            return now + timedelta(days=3)
        case "morning":
            tomorrow = timezone.localtime(now).date() + timedelta(days=1)
            return timezone.make_aware(datetime.combine(tomorrow, time(9)))
    raise ValueError(name)
