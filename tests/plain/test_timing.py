"""Timing is one object; what is not in it is refused, never ignored."""

from __future__ import annotations

import pytest

from runtime_app.reconciliation.schedule import backoff, next_look
from runtime_app.timing import Timing


@pytest.mark.parametrize(
    "values", [{"leese": 1}, {"lease": "1"}, {"lease": True}, {"reconcile_after": 5}, {"retry_budget": 1.5}]
)
def test_an_unknown_name_or_kind_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="timing"):
        Timing().with_values(values)


def test_the_schedule_follows_the_policy_and_then_repeats() -> None:
    timing = Timing()
    for checks, base in enumerate(timing.reconcile_after):
        assert 0.8 * base <= next_look(timing, checks) <= 1.2 * base
    assert next_look(timing, 99) >= 0.8 * timing.reconcile_every
    assert next_look(timing, 0, pending=True) >= 0.8 * timing.pending_after[0]


def test_retries_grow_and_stay_bounded() -> None:
    timing = Timing()
    assert backoff(timing, 1) <= 1.2 * timing.retry_first
    assert backoff(timing, 500) <= 1.2 * timing.retry_most


def test_a_send_fits_into_a_lease() -> None:
    """Rule 3: the deadline of a send lies inside the lease, with a margin."""
    timing = Timing()
    assert timing.connect_timeout + timing.read_timeout + timing.send_margin < timing.lease
