"""Times that people type, read in a zone that the page names."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from approvals.calendars import MissingHour, check_zone, local
from runtime_app.errors import FieldErrors

FORMAT = "%Y-%m-%dT%H:%M"


def own_zone() -> str:
    """The reader's, in which the pages tell every time; UTC where it is none that is known everywhere."""
    name = timezone.get_current_timezone_name()
    return name if check_zone(name) else "UTC"


def read(text: str, zone: str, field: str) -> datetime:
    """What a `datetime-local` field sent, as UTC. FieldErrors beside `field`; a time that the zone's clocks jump over
    is one of them, and of a doubled hour it is the first.
    """
    try:
        typed = datetime.strptime(text.strip(), FORMAT)
        return local(typed.date(), typed.time(), zone)
    except MissingHour as missing:
        raise FieldErrors({field: str(missing)}) from None
    except ValueError:
        raise FieldErrors({field: _("Give a day and a time, for example 2026-12-24 09:00.")}) from None


def shown(moment: datetime, zone: str) -> str:
    """A moment as such a field shows it."""
    return moment.astimezone(ZoneInfo(zone) if check_zone(zone) else UTC).strftime(FORMAT)


def in_zone(moment: datetime, zone: str) -> str:
    """A moment on that zone's clocks and in UTC, in words that cannot be taken for another zone's."""
    there = moment.astimezone(ZoneInfo(zone) if check_zone(zone) else UTC)
    if zone == "UTC":
        return _("%(local)s UTC") % {"local": date_format(there.replace(tzinfo=None), _("D j M Y, H:i"))}
    local_text = date_format(there.replace(tzinfo=None), _("D j M Y, H:i"))
    return _("%(local)s in %(zone)s (%(utc)s UTC)") % {
        "local": local_text, "zone": zone, "utc": f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"}
