"""When a person is told: at once, or with the next hour or day, and never in the person's quiet hours."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from approvals.calendars import Hours, check_zone, next_working, within
from approvals.models import Preferences

_DAYS = tuple(range(7))
_MORNING = Hours(_DAYS, time(8), time(8, 0, 0, 1))  # a daily digest goes out as this opens


def zone_of(person_zone: str, tenant_zone: str) -> str:
    """The person's own zone, else the tenant's; one that there is in any case."""
    return next((zone for zone in (person_zone, tenant_zone) if check_zone(zone)), "UTC")


def first(moment: datetime, wishes: Preferences, zone: str) -> datetime:
    """When something that happens at this moment is told."""
    if wishes.digest == "hourly":
        local = moment.astimezone(ZoneInfo(zone))
        behind = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
        moment = moment + (timedelta(hours=1) - behind) if behind else moment
    elif wishes.digest == "daily":
        moment = next_working(moment, zone, _MORNING)
    return after_quiet(moment, wishes, zone)


def after_quiet(moment: datetime, wishes: Preferences, zone: str) -> datetime:
    """The moment itself, or the end of the quiet hours that it falls into; where clocks jump over their end, the first
    instant after."""
    begins, ends = wishes.quiet_from, wishes.quiet_to
    if begins is None or ends is None or begins == ends:
        return moment
    if ends < begins:  # over midnight: people may be told from one end to the other
        return next_working(moment, zone, Hours(_DAYS, ends, begins))
    if not within(moment, zone, Hours(_DAYS, begins, ends)):
        return moment
    return next_working(moment, zone, Hours(_DAYS, ends, time.max))
