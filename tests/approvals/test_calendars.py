"""Terms, working hours and ends of days, right over every jump of the clocks and on a host of any zone.

Lessons of other people's consoles: 20 waits that did not end, for the zone of the database; 21 two zones on one page;
22 terms counted in the zone of somebody else; 23 reminders at midnight and at weekends.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from approvals import calendars
from approvals.calendars import Hours, Kind, MissingHour, NoWorkingTime, Term, due, local, next_working, within

BERLIN, NEW_YORK, LORD_HOWE, KATHMANDU = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"
OFFICE = Hours()
ALWAYS = Hours(days=tuple(range(7)), opens=time(0), closes=time.max)
TODAY = Term(Kind.END_OF_DAY, working_days=False)
ZONES = [
    BERLIN, NEW_YORK, LORD_HOWE, KATHMANDU, "America/Santiago", "Africa/Cairo", "America/Havana", "Asia/Beirut",
    "Pacific/Apia", "Antarctica/Casey", "America/St_Johns", "America/Nuuk", "Africa/Casablanca", "UTC",
]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def shown(moment: datetime, zone: str) -> str:
    return moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M")


def worked(hours: float) -> Term:
    return Term(Kind.WORKING, hours=hours)


def end_of(days: int, working_days: bool = True) -> Term:
    return Term(Kind.END_OF_DAY, days=days, working_days=working_days)


@contextmanager
def host_in(zone: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        clock.tzset()
        try:
            yield
        finally:
            patch.undo()
            clock.tzset()


moments = st.datetimes(datetime(2009, 1, 1), datetime(2026, 12, 31)).map(lambda naive: naive.replace(tzinfo=UTC))
shapes = st.builds(
    lambda days, ends, closes_late: Hours(
        tuple(sorted(days)), time(min(ends)), time.max if closes_late else time(max(ends), 30)),
    st.sets(st.integers(0, 6), min_size=1), st.tuples(st.integers(0, 23), st.integers(0, 23)), st.booleans())
terms = st.one_of(
    st.floats(0, 300).map(lambda hours: Term(Kind.ELAPSED, hours=hours)), st.floats(0, 60).map(worked),
    st.builds(end_of, st.integers(0, 9), st.booleans()))
few = settings(max_examples=150, deadline=None)


@pytest.mark.parametrize(("zone", "asked", "elapsed", "today", "length"), [
    (BERLIN, "2024-03-30T12:00", "2024-03-31 14:00", "2024-03-30T23:00", 23),
    (BERLIN, "2024-10-26T12:00", "2024-10-27 13:00", "2024-10-26T22:00", 25),
    (NEW_YORK, "2024-03-09T17:00", "2024-03-10 13:00", "2024-03-10T05:00", 23),
    (NEW_YORK, "2024-11-02T16:00", "2024-11-03 11:00", "2024-11-03T04:00", 25),
    (LORD_HOWE, "2024-10-05T01:30", "2024-10-06 12:30", "2024-10-05T13:30", 23.5),
    (LORD_HOWE, "2024-04-06T01:00", "2024-04-07 11:30", "2024-04-06T13:00", 24.5),
    (KATHMANDU, "2024-03-30T06:15", "2024-03-31 12:00", "2024-03-30T18:15", 24),
])
def test_a_day_is_24_hours_or_ends_at_midnight_over_every_jump(
    zone: str, asked: str, elapsed: str, today: str, length: float
) -> None:
    """Lessons 20 and 22: elapsed hours pass on no clock, and the day of the jump ends at its own midnight."""
    moment = at(asked).astimezone(ZoneInfo(zone))
    assert due(Term(Kind.ELAPSED, hours=24), moment, zone, OFFICE) == at(asked) + timedelta(hours=24)
    assert shown(due(Term(Kind.ELAPSED, hours=24), moment, zone, OFFICE), zone) == elapsed
    ends = due(TODAY, moment, zone, OFFICE)
    assert (ends, shown(ends, zone)[-5:]) == (at(today), "00:00")
    assert due(end_of(1, working_days=False), moment, zone, OFFICE) - ends == timedelta(hours=length)


@pytest.mark.parametrize(("zone", "asked", "ends", "reads"), [
    ("America/Santiago", "2024-09-07T20:00", "2024-09-08T04:00", "2024-09-08 01:00"),
    ("Africa/Cairo", "2024-04-25T12:00", "2024-04-25T22:00", "2024-04-26 01:00"),
    ("America/Havana", "2024-03-09T20:00", "2024-03-10T05:00", "2024-03-10 01:00"),
    ("Asia/Beirut", "2024-03-30T12:00", "2024-03-30T22:00", "2024-03-31 01:00"),
    ("America/Toronto", "1919-03-30T20:00", "1919-03-31T04:30", "1919-03-31 00:30"),
])
def test_a_day_without_midnight_ends_as_the_next_begins(zone: str, asked: str, ends: str, reads: str) -> None:
    """Lesson 22: also where the jump begins before midnight, as in Toronto from 23:30 to 0:30."""
    assert due(TODAY, at(asked), zone, OFFICE) == at(ends)
    assert shown(at(ends), zone) == reads
    assert due(TODAY, at(ends), zone, OFFICE) - at(ends) < timedelta(hours=24)


def test_a_day_that_clocks_put_back_over_midnight_show_again_does_not_begin_again() -> None:
    """Lesson 22: Casey went from 2:00 back to 23:00. Who asks in that hour is not told a midnight that is over."""
    again = at("2010-03-04T15:30")
    assert shown(again, "Antarctica/Casey") == "2010-03-04 23:30"
    assert shown(due(TODAY, again, "Antarctica/Casey", OFFICE), "Antarctica/Casey") == "2010-03-06 00:00"
    assert due(TODAY, again - timedelta(hours=3), "Antarctica/Casey", OFFICE) < again


def test_a_day_the_zone_never_had_is_skipped() -> None:
    """Lesson 22: Apia had no Friday, 30 December 2011."""
    thursday = at("2011-12-29T22:00")
    told = [due(term, thursday, "Pacific/Apia", OFFICE) for term in (
        end_of(0), end_of(1, working_days=False), end_of(1), worked(5), worked(6))]
    assert [shown(moment, "Pacific/Apia") for moment in told] == [
        "2011-12-31 00:00", "2012-01-01 00:00", "2012-01-03 00:00", "2011-12-29 17:00", "2012-01-02 10:00"]
    with pytest.raises(MissingHour):
        local(date(2011, 12, 30), time(12), "Pacific/Apia")


def test_working_hours_over_a_jump_count_the_time_that_really_passes() -> None:
    """Lesson 22: a night shift from 1:00 to 9:00 is 7 hours in March and 9 in October."""
    night = Hours(days=(6,), opens=time(1), closes=time(9))
    for asked, hours in (("2024-03-30T12:00", 7), ("2024-10-26T12:00", 9)):
        ends = due(worked(hours), at(asked), BERLIN, night)
        assert shown(ends, BERLIN)[-5:] == "09:00"
        assert due(worked(hours + 0.5), at(asked), BERLIN, night) - ends > timedelta(days=6)


def test_hours_that_the_clocks_jump_over_are_no_working_day() -> None:
    """Lesson 23: nobody works from 2:10 to 2:50 on the day that has no such time."""
    short = Hours(days=(6,), opens=time(2, 10), closes=time(2, 50))
    assert shown(next_working(at("2024-03-30T12:00"), BERLIN, short), BERLIN) == "2024-04-07 02:10"
    assert shown(due(end_of(0), at("2024-03-30T12:00"), BERLIN, short), BERLIN) == "2024-04-08 00:00"
    half = Hours(days=(6,), opens=time(2, 30), closes=time(4))
    assert next_working(at("2024-03-30T12:00"), BERLIN, half) == at("2024-03-31T01:00")


@pytest.mark.parametrize(("hours", "asked", "ends"), [
    (0, "2024-06-07 10:00", "2024-06-07 10:00"),
    (4, "2024-06-07 13:00", "2024-06-07 17:00"),
    (4.5, "2024-06-07 13:00", "2024-06-10 09:30"),
    (8, "2024-06-07 20:00", "2024-06-10 17:00"),
    (1, "2024-06-08 12:00", "2024-06-10 10:00"),
    (1, "2024-06-10 03:00", "2024-06-10 10:00"),
    (40, "2024-06-07 09:00", "2024-06-13 17:00"),
    (1, "2024-06-13 17:00", "2024-06-17 10:00"),
])
def test_working_hours_pass_only_while_people_work(hours: float, asked: str, ends: str) -> None:
    """Lesson 22: over nights, weekends and a holiday (Friday the 14th), by the tenant's clocks and nobody else's."""
    calendar = Hours(holidays=(date(2024, 6, 14),))
    for zone in (BERLIN, NEW_YORK, LORD_HOWE, KATHMANDU):
        moment = datetime.fromisoformat(asked).replace(tzinfo=ZoneInfo(zone))
        assert shown(due(worked(hours), moment, zone, calendar), zone) == ends


@pytest.mark.parametrize(("days", "asked", "ends"), [
    (0, "2024-06-07T20:00", "2024-06-08 00:00"),
    (1, "2024-06-07T10:00", "2024-06-11 00:00"),
    (0, "2024-06-08T10:00", "2024-06-11 00:00"),
    (1, "2024-06-09T10:00", "2024-06-12 00:00"),
    (4, "2024-06-10T10:00", "2024-06-18 00:00"),
])
def test_ends_of_days_are_counted_in_working_days(days: int, asked: str, ends: str) -> None:
    """Lessons 22 and 23: who asks on a Saturday asks as on Monday; Friday the 14th is a holiday."""
    assert shown(due(end_of(days), at(asked), BERLIN, Hours(holidays=(date(2024, 6, 14),))), BERLIN) == ends


def test_no_reminder_is_due_at_night_at_a_weekend_or_on_a_holiday() -> None:
    """Lesson 23: it waits for the next opening, and goes at once while people work."""
    calendar = Hours(holidays=(date(2024, 6, 10),))
    tuesday = local(date(2024, 6, 11), time(9), NEW_YORK)
    for day, hour in ((7, 17), (7, 23), (8, 12), (9, 0), (10, 12), (11, 8)):
        moment = local(date(2024, 6, day), time(hour), NEW_YORK)
        assert not within(moment, NEW_YORK, calendar) and next_working(moment, NEW_YORK, calendar) == tuesday
    for moment in (tuesday, tuesday + timedelta(hours=8, microseconds=-1)):
        assert within(moment, NEW_YORK, calendar) and next_working(moment, NEW_YORK, calendar) == moment


def test_the_same_moment_is_work_in_one_zone_and_night_in_another() -> None:
    """Lesson 22: the zone is the tenant's, not the one in which the moment happens to be written."""
    moment = at("2024-06-10T13:30")
    assert [within(moment, zone, OFFICE) for zone in (BERLIN, NEW_YORK, KATHMANDU)] == [True, True, False]
    for term in (worked(1), Term(Kind.ELAPSED, hours=1), end_of(0)):
        told = [due(term, moment.astimezone(ZoneInfo(zone)), BERLIN, OFFICE) for zone in ZONES]
        assert all(one.tzinfo is UTC for one in told) and len(set(told)) == 1


def test_time_max_is_the_end_of_the_day_and_nights_join() -> None:
    """Lesson 22: a calendar that is always open has no gap of a microsecond at midnight, and passes like time."""
    start = at("2024-03-29T12:00")
    assert due(worked(60), start, BERLIN, ALWAYS) == start + timedelta(hours=60)
    assert within(at("2024-06-10T21:59:59.999999"), BERLIN, ALWAYS)


@pytest.mark.parametrize("hours", [
    Hours(days=()), Hours(holidays=tuple(date(2024, 6, 1) + timedelta(days=n) for n in range(500)))])
def test_a_calendar_without_work_is_told_and_not_searched_for_ever(hours: Hours) -> None:
    """Lesson 23: a policy nobody could keep is an error in words."""
    moment = at("2024-06-10T12:00")
    for term in (worked(0), worked(1), end_of(0)):
        with pytest.raises(NoWorkingTime, match="too little working time after 2024-06-10 in Europe/Berlin"):
            due(term, moment, BERLIN, hours)
    assert not within(moment, BERLIN, hours)
    assert due(TODAY, moment, BERLIN, hours) == at("2024-06-10T22:00")


def test_working_time_is_looked_for_over_a_year_of_holidays_and_ten_years_of_work() -> None:
    """Lesson 23: a pause of 365 days is waited for; a term that minutes a week cannot fill is refused."""
    closed = tuple(date(2024, 6, 11) + timedelta(days=n) for n in range(365))
    assert shown(next_working(at("2024-06-10T20:00"), BERLIN, Hours(holidays=closed)), BERLIN) == "2025-06-11 09:00"
    with pytest.raises(NoWorkingTime):
        due(worked(1000), at("2024-06-10T20:00"), BERLIN, Hours(days=(0,), opens=time(9), closes=time(9, 5)))


def test_a_local_time_is_found_doubled_or_refused() -> None:
    """Lesson 20: the first of two, and a sentence for none."""
    assert local(date(2024, 10, 27), time(2, 30, fold=1), BERLIN) == at("2024-10-27T00:30")
    assert local(date(2024, 4, 7), time(1, 45), LORD_HOWE) == at("2024-04-06T14:45")
    assert local(date(2024, 6, 10), time(9), KATHMANDU) == at("2024-06-10T03:15")
    with pytest.raises(MissingHour, match=r"There is no 02:30 on 2024-03-31 in Europe/Berlin"):
        local(date(2024, 3, 31), time(2, 30), BERLIN)
    for day, bad in ((date(2024, 6, 10), time(9, tzinfo=UTC)), (date(9999, 12, 31), time(9)), (date.min, time(9))):
        with pytest.raises(ValueError, match="time without zone"):
            local(day, bad, BERLIN)


@pytest.mark.parametrize("zone", [
    "", "Mars/Base", "Europe", "../etc/passwd", "/etc/localtime", "localtime", "a\0b", "berlin", "right/Europe/Berlin"])
def test_an_unknown_zone_is_refused_in_words(zone: str) -> None:
    """Lesson 20: also names that a host may have by itself, since another host means something else by them."""
    assert not calendars.check_zone(zone)
    for call in (partial(due, TODAY, at("2024-06-10"), zone, OFFICE), partial(local, date(2024, 6, 10), time(9), zone)):
        with pytest.raises(ValueError, match="There is no time zone"):
            call()


@pytest.mark.parametrize("moment", [
    datetime(2024, 6, 10), datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_a_moment_without_zone_or_outside_history_is_refused(moment: datetime) -> None:
    """Lesson 20: a naive time would be read in the zone of the host."""
    calls: list[Callable[[datetime, str, Hours], object]] = [partial(due, TODAY), within, next_working]
    for call in calls:
        with pytest.raises(ValueError, match="Give a time with its zone"):
            call(moment, BERLIN, OFFICE)


def test_impossible_hours_and_terms_are_refused() -> None:
    """Lesson 23: what a policy says wrong is told when it is said."""
    zoned = {"opens": time(9, tzinfo=UTC), "closes": time(17, tzinfo=UTC)}
    for hours in ({"opens": time(17), "closes": time(9)}, {"closes": time(0)}, {"days": (7,)}, {"days": (True,)}, zoned,
                  {"holidays": (datetime(2024, 6, 10),)}):
        with pytest.raises(ValueError, match=r"Working days|Hours open"):
            Hours(**hours)
    for term in ({"hours": -1}, {"hours": float("nan")}, {"hours": 1e9}, {"days": -1}, {"days": 1.5}, {"days": 10**6}):
        with pytest.raises(ValueError, match="A term is"):
            Term(Kind.WORKING, **term)
    with pytest.raises(ValueError, match="not a valid Kind"):
        Term("never")  # type: ignore[arg-type]


@few
@given(terms, moments, st.timedeltas(timedelta(0), timedelta(days=4)), st.sampled_from(ZONES), shapes)
def test_who_asks_later_has_until_later_and_nobody_less_than_the_term(
    term: Term, asked: datetime, later: timedelta, zone: str, hours: Hours
) -> None:
    """Lessons 20 and 22: in any zone and calendar, over any jump of 2009 to 2026."""
    ends = due(term, asked, zone, hours)
    assert ends.tzinfo is UTC
    assert ends - asked >= timedelta(hours=term.hours)
    assert ends > asked or term.kind is not Kind.END_OF_DAY
    assert due(term, asked + later, zone, hours) >= ends


@few
@given(moments, st.sampled_from(ZONES), shapes, st.floats(0, 30), st.floats(0, 30))
def test_working_time_adds_up(asked: datetime, zone: str, hours: Hours, one: float, two: float) -> None:
    """Lesson 23: two terms after each other are their sum, to a rounding; and the next working moment is one."""
    both = due(worked(two), due(worked(one), asked, zone, hours), zone, hours)
    early, late = (due(worked(max(0.0, one + two + sign * 1e-9)), asked, zone, hours) for sign in (-1, 1))
    assert early - timedelta(microseconds=3) <= both <= late + timedelta(microseconds=3)
    opening = next_working(asked, zone, hours)
    assert within(opening, zone, hours) and within(asked, zone, hours) == (opening == asked)


@few
@given(terms, moments, st.sampled_from(ZONES), shapes)
def test_the_zone_of_the_host_changes_nothing(term: Term, asked: datetime, zone: str, hours: Hours) -> None:
    """Lesson 20: tested with hosts that are not in UTC."""
    told = set()
    for host in ("UTC", "America/New_York", "Pacific/Kiritimati"):
        with host_in(host):
            told.add((due(term, asked, zone, hours), next_working(asked, zone, hours), within(asked, zone, hours)))
    assert len(told) == 1
