"""Times and durations as people read them: one place, so that no two pages tell a time differently."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _


def iso_utc(moment: datetime) -> str:
    """Seconds are enough for a person; the machine-readable attribute carries the rest."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def offset(moment: datetime) -> str:
    """The reader's offset at that moment, for example +01:00; "UTC" when there is none."""
    delta = timezone.localtime(moment).utcoffset() or timedelta()
    minutes = int(delta.total_seconds() // 60)
    if minutes == 0:
        return "UTC"
    sign, minutes = ("-" if minutes < 0 else "+"), abs(minutes)
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def as_day(moment: datetime) -> str:
    """A day in the reader's zone, with its weekday."""
    return date_format(timezone.localtime(moment), _("l, j F Y"))


def as_date(day: date) -> str:
    """A day of a calendar, which no zone moves."""
    return date_format(day, _("j F Y"))


def as_time(moment: datetime) -> SafeString:
    """The time of day alone, for places where the day is already said."""
    return _time_element(moment, date_format(timezone.localtime(moment), "H:i:s"), "")


def as_moment(moment: datetime) -> SafeString:
    """Day, time and the reader's offset, the year only when it is another one; UTC in full on hover."""
    local = timezone.localtime(moment)
    pattern = _("j M, H:i") if local.year == timezone.localtime().year else _("j M Y, H:i")
    return _time_element(moment, date_format(local, pattern), offset(moment))


def _time_element(moment: datetime, text: str, zone: str) -> SafeString:
    tail = format_html(' <span class="offset">{}</span>', zone) if zone else ""
    exact = moment.astimezone(UTC).isoformat()
    return format_html('<time datetime="{}" title="{}">{}{}</time>', exact, iso_utc(moment), text, tail)


def as_duration(value: timedelta | float | int | None) -> str:
    """Two units at most, for example "2 d 4 h"; never negative, whatever two clocks said."""
    if value is None:
        return "—"
    exact = max(0.0, value.total_seconds() if isinstance(value, timedelta) else float(value))
    if 0 < exact < 1:
        return _("%(n)s ms") % {"n": round(exact * 1000)}
    seconds = int(exact)
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    parts = [_("%(n)s d") % {"n": days}] if days else []
    parts += [_("%(n)s h") % {"n": hours}] if hours else []
    parts += [_("%(n)s min") % {"n": minutes}] if minutes and not days else []
    parts += [_("%(n)s s") % {"n": left}] if left and not days and not hours else []
    return " ".join(parts[:2]) or _("%(n)s s") % {"n": 0}
