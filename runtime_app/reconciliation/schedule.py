"""When to look next, from the one timing policy."""

from __future__ import annotations

import random

from runtime_app.timing import Timing


def next_look(timing: Timing, checks: int, *, pending: bool = False) -> float:
    """Seconds until the look after `checks` looks, spread by a fifth so that many do not come at once."""
    steps = timing.pending_after if pending else timing.reconcile_after
    every = timing.pending_every if pending else timing.reconcile_every
    base = steps[checks] if checks < len(steps) else every
    return float(base) * random.uniform(0.8, 1.2)


def backoff(timing: Timing, tries: int) -> float:
    """Seconds until a step is tried again: doubling, bounded, spread."""
    doubled = timing.retry_first * 2 ** min(max(0, tries - 1), 30)  # something tried for weeks must not overflow
    return float(min(timing.retry_most, doubled) * random.uniform(0.8, 1.2))
