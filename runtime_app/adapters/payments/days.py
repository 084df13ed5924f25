"""A provider's own days: statements are told by them, and they begin at its midnight, not at ours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


def known_zone(name: str) -> ZoneInfo | None:
    """The time zone of this name; None when there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not found, no name at all, or a name that leads to something else
        return None


def day_window(day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The first instant of `day` in this zone, and the first of the next day, in UTC. A day has 23 to 25 hours."""
    return _midnight(day, zone), _midnight(day + timedelta(days=1), zone)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time.min, zone).astimezone(UTC)
