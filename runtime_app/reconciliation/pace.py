"""How fast an account's provider may be asked, and when not at all: a bucket of requests, and a breaker behind it.

Plain values in and out. The bucket gains `look_rate` requests a second up to `look_burst`. Answers that tell nothing,
`look_troubles` of them in a row, or one that says "too many", close the account for looks. When that time is over, one
look goes first; only its good answer opens the account again. What is not asked proves nothing and counts as nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from runtime_app.adapters.payments.types import Inconclusive, Observation
from runtime_app.timing import Timing

LOOK = 2.0  # requests: the list, and the payment's total where the list shows nothing of ours
PAGE = 100  # refunds on one page of a sweep
_RECORDED = 0.002  # seconds in which a sweep writes down one refund that it has found
_SLOWEST = 0.001  # requests a second, when the policy says none or less


class Why(StrEnum):
    """Why a look may not be made now."""

    CLOSED = "closed"
    SWEEPING = "sweeping"
    SPENT = "spent"


@dataclass(frozen=True, slots=True)
class Heard:
    """What an answer says of the provider's health. `throttled`: it asks to wait; `wait`: for so many seconds."""

    trouble: bool
    throttled: bool = False
    wait: float | None = None


GOOD = Heard(trouble=False)


def hear(answer: object) -> Heard:
    """Of the answer to a question. One that is not understood is no trouble of this kind: somebody answered."""
    seen = answer.seen if isinstance(answer, Inconclusive) else None
    return GOOD if seen is None else heard_on(seen)


def heard_on(seen: Observation) -> Heard:
    status = seen.http_status
    if status == 429 or (status == 503 and seen.retry_after is not None):
        return Heard(trouble=True, throttled=True, wait=seen.retry_after)
    return Heard(trouble=status is None or status >= 500)


@dataclass(slots=True)
class Pace:
    """One account's row while its lock is held. `sweep_due_at` lies ahead while a worker has the sweep in hand, and in
    the past while nobody has it yet; `sweep_since` is when the last one was wished for or ended.
    """

    tokens: float
    refilled_at: datetime
    troubles: int = 0
    closed_until: datetime | None = None
    sweep_due_at: datetime | None = None
    sweep_since: datetime | None = None

    def refill(self, now: datetime, timing: Timing) -> None:
        gained = max(0.0, (now - self.refilled_at).total_seconds()) * rate(timing)
        self.tokens, self.refilled_at = min(timing.look_burst, self.tokens + gained), now

    def ask(self, costs: Sequence[float], now: datetime, timing: Timing, *, sweeping: bool = False) -> int | Why:
        """How many of these may be made now, the first ones first, each of so many requests; or why none may."""
        if self.closed_until is not None and self.closed_until > now:
            return Why.CLOSED
        if not costs:
            return Why.SPENT
        if self.closed_until is not None:
            # Whoever comes first tries it. If nothing is ever heard of that, the next one tries after its time.
            self.closed_until = now + timedelta(seconds=answer_within(timing))
            self.tokens -= costs[0]
            return 1
        if not sweeping and self._makes_room(now, timing):
            return Why.SWEEPING
        granted = 0
        for cost in costs:
            if self.tokens < min(cost, timing.look_burst):
                break
            self.tokens -= cost
            granted += 1
        return granted or Why.SPENT

    def _makes_room(self, now: datetime, timing: Timing) -> bool:
        """A sweep is in hand, or wished for so lately that somebody will take it up in a moment."""
        if self.sweep_due_at is None or self.sweep_due_at > now:
            return self.sweep_due_at is not None
        return self.sweep_since is not None and (now - self.sweep_since).total_seconds() < answer_within(timing)

    def hear(
        self, answers: Sequence[Heard], now: datetime, timing: Timing, *, sweeps: bool, probe: Heard | None = None
    ) -> None:
        """Learn from answers that came together. `probe`: the one to the look that went first, which says most.
        `sweeps`: the account's list can be read, which is the next thing to do when it opens again.
        """
        throttled = [one for one in answers if one.throttled]
        bad = len([one for one in answers if one.trouble])
        if throttled:
            self.troubles += 1
            asked = max((one.wait or 0.0) for one in throttled)
            self._close(max(asked, closed_for(timing, self.troubles)), now)
        elif probe is not None and self.closed_until is not None:
            self.troubles = self.troubles + 1 if probe.trouble else 0
            self.closed_until = None
            if probe.trouble:
                self._close(closed_for(timing, self.troubles), now)
            elif sweeps:
                self.sweep_due_at = self.sweep_since = now
        elif self.closed_until is None:  # what was under way when it closed says nothing new
            self.troubles = min(self.troubles + bad, timing.look_troubles) if bad == len(answers) else 0
            if self.troubles >= max(1, timing.look_troubles):
                self._close(closed_for(timing, self.troubles), now)

    def _close(self, seconds: float, now: datetime) -> None:
        until = now + timedelta(seconds=seconds)
        self.closed_until = until if self.closed_until is None else max(self.closed_until, until)

    def wish_sweep(self, worth: int, now: datetime, timing: Timing) -> None:
        """So many wait for a look that the list may answer: one worker is to read it, unless that was done lately."""
        lately = self.sweep_since is not None and (now - self.sweep_since).total_seconds() < timing.sweep_every
        if worth > timing.sweep_from and self.sweep_due_at is None and self.closed_until is None and not lately:
            self.sweep_due_at = self.sweep_since = now

    def wait(self, why: Why, waiting: int, cost: float, now: datetime, timing: Timing) -> float:
        """Seconds until a look that may not be made now is tried again, spread so that not all come at once."""
        each = max(cost, 1.0) / rate(timing)
        crowd = max(1, waiting) * each
        if why == Why.CLOSED and self.closed_until is not None:
            left = (self.closed_until - now).total_seconds()
            return max(0.0, left) + random.uniform(0.0, min(crowd, timing.closed_most))
        if self.sweep_due_at is not None:
            return (each + waiting * (1 / (PAGE * rate(timing)) + _RECORDED)) * random.uniform(0.8, 1.5)
        return each + random.uniform(0.0, crowd)


def rate(timing: Timing) -> float:
    return max(timing.look_rate, _SLOWEST)


def closed_for(timing: Timing, troubles: int) -> float:
    """Seconds for which an account is closed after so many troubles: doubling, bounded, spread."""
    doubled = timing.closed_first * 2 ** min(max(0, troubles - timing.look_troubles), 30)
    return float(min(timing.closed_most, doubled) * random.uniform(0.8, 1.2))


def answer_within(timing: Timing) -> float:
    """Seconds in which one question is answered, or never will be."""
    return timing.connect_timeout + timing.read_timeout + timing.send_margin
