"""When people must have decided, and when they may be reminded: working time in a tenant's own zone, told in UTC."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from importlib import resources
from zoneinfo import ZoneInfo

LONGEST_PAUSE = 366  # days in a row without working time, after which a calendar counts as having none
MOST_DAYS = 3660  # ten years: the longest term, and the farthest day that is looked at for it
YEARS = range(1900, 9001)  # far inside what datetime can hold, so that no sum leaves it
_ZONES = frozenset((resources.files("tzdata") / "zones").read_text("utf-8").split())
ZONES = ("UTC", *sorted(name for name in _ZONES if "/" in name and not name.startswith("Etc/")))  # for people to choose


class NoWorkingTime(ValueError):
    """The calendar has no working time for this: none for a year, or too little within ten."""


class MissingHour(ValueError):
    """The zone's clocks jump over this time."""


@dataclass(frozen=True, slots=True)
class Hours:
    """A tenant's working hours in its own zone: from `opens` up to, not at, `closes`; time.max means the day's end.

    Where clocks jump over one of them, it is the first instant after; where they show it twice, the first of both.
    """

    days: tuple[int, ...] = (0, 1, 2, 3, 4)  # Monday is 0
    opens: time = time(9)
    closes: time = time(17)
    holidays: tuple[date, ...] = ()

    def __post_init__(self) -> None:
        if not all(type(day) is int and 0 <= day <= 6 for day in self.days) or {*map(type, self.holidays)} - {date}:
            raise ValueError("Working days are numbers from 0, Monday, to 6, Sunday; holidays are dates.")
        if self.opens.tzinfo or self.closes.tzinfo or not self.opens < self.closes:
            raise ValueError("Hours open before they close, both without a zone; the day's end is written time.max.")


class Kind(StrEnum):
    ELAPSED = "elapsed"
    WORKING = "working"
    END_OF_DAY = "end_of_day"


@dataclass(frozen=True, slots=True)
class Term:
    """How long people have: `hours` that pass or are worked, or until a day ends; ValueError beyond ten years.

    `days` 0 is the end of the day of asking, 1 of the next. With `working_days` only those count, and who asks
    on another day asks as on the first of them after it.
    """

    kind: Kind
    hours: float = 0.0
    days: int = 0
    working_days: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))  # stored terms come back as text
        if not 0 <= self.hours <= 24 * MOST_DAYS or type(self.days) is not int or not 0 <= self.days <= MOST_DAYS:
            raise ValueError(f"A term is 0 to {24 * MOST_DAYS} hours, or a whole number of days from 0 to {MOST_DAYS}.")


def due(term: Term, asked_at: datetime, zone: str, hours: Hours) -> datetime:
    """The end of the term, in UTC; ValueError for a time without zone or an unknown zone, or NoWorkingTime."""
    asked, tz, left = _utc(asked_at), _zone(zone), timedelta(hours=term.hours)
    if term.kind is Kind.ELAPSED:
        return asked + left
    if term.kind is Kind.END_OF_DAY and not term.working_days:
        hours = Hours(tuple(range(7)), time(0), time.max)
    for number, (opens, closes, ends) in enumerate(_working_days(asked, tz, hours)):
        if term.kind is Kind.END_OF_DAY and number == term.days:
            return ends
        if term.kind is Kind.WORKING and asked < closes:
            left -= closes - max(opens, asked)
            if left <= timedelta(0):
                return closes + left
    raise NoWorkingTime(f"There is too little working time after {asked:%Y-%m-%d} in {zone}.")


def within(moment: datetime, zone: str, hours: Hours) -> bool:
    """Whether people work at this moment; ValueError as `due`."""
    instant = _utc(moment)
    opens, closes, _ = next(_working_days(instant, _zone(zone), hours), (instant,) * 3)
    return opens <= instant < closes


def next_working(moment: datetime, zone: str, hours: Hours) -> datetime:
    """The moment itself if people work then, else the next opening, in UTC; errors as `due`."""
    return due(Term(Kind.WORKING), moment, zone, hours)


def check_zone(zone: str) -> bool:
    """Whether the zone is one of the pinned tzdata; what else a host has (localtime, right/…) differs between hosts."""
    return isinstance(zone, str) and zone in _ZONES


def local(day: date, at: time, zone: str) -> datetime:
    """This time on the zone's clocks, in UTC: the first of two where they show it twice; MissingHour where never."""
    tz = _zone(zone)
    if at.tzinfo or day.year not in YEARS:
        raise ValueError(f"Give a time without zone, on a day of the years {YEARS[0]} to {YEARS[-1]}.")
    if (instant := _first(day, at, tz)).astimezone(tz).replace(tzinfo=None) != datetime.combine(day, at):
        raise MissingHour(f"There is no {at:%H:%M} on {day} in {zone}: the clocks go forward over it.")
    return instant


def _working_days(moment: datetime, tz: ZoneInfo, hours: Hours) -> Iterator[tuple[datetime, datetime, datetime]]:
    """When each day with working time opens, closes and ends, from the moment's own day on."""
    first = latest = day = moment.astimezone(tz).date()
    while (day - latest).days <= LONGEST_PAUSE and (day - first).days <= MOST_DAYS:
        opens, ends = _first(day, hours.opens, tz), _first(day + timedelta(days=1), time(0), tz)
        closes = ends if hours.closes == time.max else _first(day, hours.closes, tz)
        # Clocks may be put back over midnight after the day's end, or jump over all its hours or the whole day (Apia).
        if day.weekday() in hours.days and day not in hours.holidays and opens < closes and moment < ends:
            latest = day
            yield opens, closes, ends
        day += timedelta(days=1)


def _first(day: date, at: time, tz: ZoneInfo) -> datetime:
    """The first instant at which the zone's clocks show this time or, where they jump over it, a later one."""
    wall = datetime.combine(day, at)
    early, late = (wall.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (1, 0))
    if late <= early:  # the clocks show it, once or twice
        return late
    # The jump lies in between, and not always at `late`: Toronto's clocks once went from 23:30 to 0:30.
    steps = bisect_left(range((late - early) // timedelta.resolution), wall, key=lambda n: (
        early + n * timedelta.resolution).astimezone(tz).replace(tzinfo=None))
    return early + steps * timedelta.resolution


def _utc(moment: datetime) -> datetime:
    if moment.utcoffset() is None or moment.year not in YEARS:
        raise ValueError(f"Give a time with its zone, of the years {YEARS[0]} to {YEARS[-1]}: {moment!r}")
    return moment.astimezone(UTC)


def _zone(zone: str) -> ZoneInfo:
    if not check_zone(zone):
        raise ValueError(f"There is no time zone {zone!r}; use a name such as Europe/Berlin.")
    return ZoneInfo(zone)


def before(deadline: datetime, hours: float, asked_at: datetime) -> datetime:
    """So many hours before the deadline; half-way where the time is shorter than that."""
    found = deadline - timedelta(hours=hours)
    return found if found > asked_at else asked_at + (deadline - asked_at) / 2
