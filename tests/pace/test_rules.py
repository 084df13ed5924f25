"""The rules of the pace, as plain values: no database, no provider, no clock but the one that is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtime_app.adapters.payments.types import Absent, Inconclusive, Observation
from runtime_app.reconciliation.pace import GOOD, Heard, Pace, Why, closed_for, hear
from runtime_app.timing import Timing

T0 = datetime(2026, 3, 1, tzinfo=UTC)
TIMING = Timing().with_values({"look_rate": 10, "look_burst": 20, "closed_first": 5, "closed_most": 300})
TROUBLE = Heard(trouble=True)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def full() -> Pace:
    return Pace(tokens=20.0, refilled_at=T0)


def closed(troubles: int = 5, seconds: float = 60) -> Pace:
    return Pace(tokens=20.0, refilled_at=T0, troubles=troubles, closed_until=at(seconds))


def test_a_bucket_grants_so_many_of_those_that_ask_and_fills_again_up_to_its_burst() -> None:
    """money.md 3.4: so many requests a second, so many at once."""
    pace = full()
    assert pace.ask([2.0] * 15, T0, TIMING) == 10
    assert pace.ask([2.0], T0, TIMING) == Why.SPENT
    pace.refill(at(1), TIMING)
    assert pace.ask([2.0] * 15, at(1), TIMING) == 5
    pace.refill(at(1000), TIMING)
    assert pace.tokens == 20.0


def test_no_second_of_any_length_of_time_sees_more_than_rate_and_burst() -> None:
    """M23: whoever asks however often, what is granted in a time stays under rate x time + burst."""
    pace, granted = full(), 0.0
    for tick in range(1000):
        now = at(tick / 50)
        pace.refill(now, TIMING)
        answer = pace.ask([3.0, 2.0, 2.0, 1.0], now, TIMING)
        granted += 0 if isinstance(answer, Why) else sum([3.0, 2.0, 2.0, 1.0][:answer])
    assert 10 * 19.98 <= granted <= 10 * 19.98 + 20


def test_a_look_dearer_than_the_whole_burst_is_not_refused_for_ever() -> None:
    small = TIMING.with_values({"look_burst": 1})
    pace = Pace(tokens=1.0, refilled_at=T0)
    assert pace.ask([3.0], T0, small) == 1 and pace.tokens == -2.0


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    pace = full()
    pace.refill(at(-3600), TIMING)
    assert pace.tokens == 20.0


def test_troubles_in_a_row_close_the_account_and_a_good_answer_between_them_counts_anew() -> None:
    pace = full()
    pace.hear([TROUBLE] * 4, T0, TIMING, sweeps=True)
    pace.hear([GOOD], T0, TIMING, sweeps=True)
    pace.hear([TROUBLE] * 4, T0, TIMING, sweeps=True)
    assert (pace.troubles, pace.closed_until) == (4, None)
    pace.hear([TROUBLE], T0, TIMING, sweeps=True)
    assert pace.closed_until is not None and at(3.9) < pace.closed_until < at(6.1)
    assert pace.ask([2.0], T0, TIMING) == Why.CLOSED


def test_when_the_time_is_over_exactly_one_goes_first() -> None:
    pace = closed(seconds=60)
    assert pace.ask([2.0] * 9, at(60), TIMING) == 1
    assert pace.ask([2.0] * 9, at(61), TIMING) == Why.CLOSED


def test_one_that_went_first_and_was_never_heard_of_is_followed_by_another() -> None:
    """A killed worker must not leave an account closed for ever."""
    pace = closed(seconds=60)
    pace.ask([2.0], at(60), TIMING)
    assert pace.ask([2.0, 2.0], at(60 + 3 + 25 + 5), TIMING) == 1


def test_a_good_answer_to_it_opens_the_account_and_has_the_list_read_where_there_is_one() -> None:
    for sweeps in (True, False):
        pace = closed(seconds=60)
        pace.ask([2.0], at(60), TIMING)
        pace.hear([GOOD], at(61), TIMING, sweeps=sweeps, probe=GOOD)
        assert (pace.troubles, pace.closed_until) == (0, None)
        assert pace.sweep_due_at == (at(61) if sweeps else None)


def test_a_bad_one_closes_it_for_longer_each_time_and_never_for_longer_than_the_most() -> None:
    pace, waits, now = closed(seconds=0), [], 0.0
    for _ in range(12):
        pace.ask([2.0], at(now), TIMING)
        pace.hear([TROUBLE], at(now), TIMING, sweeps=True, probe=TROUBLE)
        assert pace.closed_until is not None
        waits.append((pace.closed_until - at(now)).total_seconds())
        now += waits[-1]
    assert all(0.8 * 5 * 2 ** (n + 1) <= wait <= 1.2 * 5 * 2 ** (n + 1) for n, wait in enumerate(waits[:5]))
    assert max(waits) <= 1.2 * 300
    assert closed_for(TIMING, 10**6) <= 360


def test_what_was_under_way_when_it_closed_neither_opens_it_nor_closes_it_for_longer() -> None:
    for heard in (GOOD, TROUBLE):
        pace = closed(seconds=60)
        pace.hear([heard] * 9, at(1), TIMING, sweeps=True)
        assert (pace.troubles, pace.closed_until) == (5, at(60))


def test_a_429_closes_at_once_for_as_long_as_it_says() -> None:
    """F12: Retry-After is honoured, and an earlier, longer closing is not shortened by it."""
    pace = full()
    pace.hear([Heard(True, throttled=True, wait=40.0), GOOD], T0, TIMING, sweeps=True)
    assert pace.closed_until == at(40) and pace.troubles == 1
    pace.hear([Heard(True, throttled=True, wait=2.0)], at(1), TIMING, sweeps=True)
    assert pace.closed_until == at(40)


def test_what_is_refused_while_it_is_closed_comes_again_just_after_and_not_all_at_once() -> None:
    pace = closed(seconds=60)
    waits = [pace.wait(Why.CLOSED, 1000, 2.0, at(10), TIMING) for _ in range(500)]
    assert min(waits) >= 50 and max(waits) <= 50 + 200 and len({round(w) for w in waits}) > 100
    alone = [pace.wait(Why.CLOSED, 1, 2.0, at(10), TIMING) for _ in range(50)]
    assert max(alone) <= 50 + 0.2


def test_what_is_refused_for_its_rate_is_spread_over_the_time_that_all_of_them_take() -> None:
    waits = [full().wait(Why.SPENT, 1000, 2.0, T0, TIMING) for _ in range(500)]
    assert max(waits) <= 200.2 and sum(waits) / len(waits) > 80


def test_a_sweep_is_wished_for_where_many_wait_and_not_again_before_its_time() -> None:
    pace = full()
    pace.wish_sweep(50, T0, TIMING)
    assert pace.sweep_due_at is None
    pace.wish_sweep(51, T0, TIMING)
    assert pace.sweep_due_at == T0
    pace.sweep_due_at = None
    pace.wish_sweep(51, at(299), TIMING)
    assert pace.sweep_due_at is None
    pace.wish_sweep(51, at(301), TIMING)
    assert pace.sweep_due_at == at(301)


def test_looks_make_room_for_a_sweep_in_hand_or_lately_wished_for_and_not_for_one_that_nobody_takes() -> None:
    """Whoever reads the list may die, and nobody may have a thread for it: looks one by one go on then."""
    pace = full()
    pace.sweep_due_at, pace.sweep_since = at(60), T0
    assert pace.ask([2.0], at(59), TIMING) == Why.SWEEPING
    assert pace.ask([1.0], at(59), TIMING, sweeping=True) == 1
    assert pace.ask([2.0], at(60), TIMING) == 1
    pace.sweep_due_at = pace.sweep_since = at(100)
    assert pace.ask([2.0], at(132), TIMING) == Why.SWEEPING
    assert pace.ask([2.0], at(134), TIMING) == 1


@pytest.mark.parametrize(
    ("status", "trouble", "throttled"),
    [(None, True, False), (500, True, False), (503, True, False), (429, True, True), (200, False, False),
     (401, False, False), (404, False, False)],
)
def test_only_silence_a_server_error_and_too_many_are_trouble(
    status: int | None, trouble: bool, throttled: bool
) -> None:
    """An answer that is not understood, or that refuses our key, is an answer: the provider is there."""
    heard = hear(Inconclusive("no", _seen(status)))
    assert (heard.trouble, heard.throttled) == (trouble, throttled)
    assert not hear(Absent(_seen(status))).trouble


def test_a_503_that_says_when_to_come_back_is_taken_at_its_word() -> None:
    heard = hear(Inconclusive("no", _seen(503, retry_after=120.0)))
    assert (heard.throttled, heard.wait) == (True, 120.0)


def _seen(status: int | None, retry_after: float | None = None) -> Observation:
    return Observation(
        retry_after=retry_after,
        request_line="GET /", http_status=status, provider_request_id=None, body_sha256=None, body=None,
        api_version="1", adapter_version="1",
    )
