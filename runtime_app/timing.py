"""Every duration the runtime lives by, in one object that a trial or a test may shorten."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


@dataclass(frozen=True, slots=True)
class Timing:
    """All values are seconds unless the name says otherwise."""

    lease: float = 60.0
    connect_timeout: float = 3.0
    read_timeout: float = 25.0
    send_margin: float = 5.0  # what must be left of the lease beyond both timeouts before anything is sent
    clock_poll: float = 2.0  # the safety net under lost rings
    drain_budget: float = 20.0  # one wake job works at most this long, then rings again

    retry_first: float = 2.0  # a step that raised is tried again after this, doubling, with jitter
    retry_most: float = 300.0
    retry_budget: int = 8  # starts without progress before the task is parked as a dead letter
    sibling_poll: float = 30.0  # a parked sibling is looked at again at the latest after this

    approval_deadline: float = 7 * DAY
    input_deadline: float = 30 * DAY
    password_fresh: float = 5 * MINUTE  # so long after the password was given an amount that asks for it is decided

    tell_first: float = 30.0  # what could not be told is tried again after this, doubling, with jitter
    tell_most: float = 2 * HOUR
    tell_tries: int = 10  # tries, over some four hours, before it is given up as a dead letter

    reconcile_after: tuple[float, ...] = (
        5, 15, 45, 2 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR,
    )
    reconcile_every: float = 6 * HOUR
    pending_after: tuple[float, ...] = (15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR)
    pending_every: float = DAY
    pending_sla: float = 10 * DAY
    absent_age: float = 5 * MINUTE  # absence proves nothing before this age
    absent_count: int = 4  # nor before this many complete looks
    max_in_flight: float = HOUR  # how long a provider may still act on a request it has taken
    key_margin: float = 2 * HOUR  # same-key resends stop this long before the provider forgets keys
    resend_most: int = 2
    handover: float = DAY
    attention_after: float = 15 * MINUTE  # an outcome unknown for longer wears a badge
    look_fresh: float = 15 * MINUTE  # people declare on a complete look that is at most this old
    late_watch: float = 30 * DAY
    late_watch_every: float = DAY
    refused_watch: float = 3 * DAY  # what was refused without a refund that says so is looked at for this long

    statement_at: float = 6 * HOUR  # so long after the provider's midnight the statement of the day before is read
    statement_retry: float = 15 * MINUTE  # one that is not whole, or waits for something: again after this, doubling
    statement_every: float = 6 * HOUR  # up to this
    statement_sla: float = 3 * DAY  # so long after its day a line, or a whole statement, may still come

    look_rate: float = 20.0  # requests a second with which one account's provider is asked what happened
    look_burst: float = 20.0  # requests at once
    look_abreast: int = 4  # looks at one account under way in one worker, so that a slow one leaves threads to others
    look_troubles: int = 5  # answers in a row that tell nothing and close the account for looks
    closed_first: float = 5.0  # for so long, then doubling
    closed_most: float = 5 * MINUTE
    sweep_from: int = 50  # more outcomes in doubt and due than this are found by reading the account's list
    sweep_every: float = 5 * MINUTE
    sweep_margin: float = 5 * MINUTE  # how far the provider's clock may be behind ours

    def with_values(self, values: dict[str, object]) -> Timing:
        """A copy with some values replaced; an unknown name or a value of another kind raises ValueError."""
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise ValueError(f"timing has no value named {name!r}")
            kind = tuple if isinstance(known[name], tuple) else (int if type(known[name]) is int else (int, float))
            if not isinstance(value, list if kind is tuple else kind) or isinstance(value, bool):
                raise ValueError(f"timing value {name!r} has the wrong kind: {value!r}")
        return replace(self, **{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})  # type: ignore[arg-type]
