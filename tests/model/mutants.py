"""Ways to get the protocol wrong. Each must be found out, or the model would not notice when the product does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from runtime_app.reconciliation.table import ROWS, Row, Situation, Verdict
from runtime_app.states import Status
from tests.model.protocol import Protocol
from tests.model.world import Provider, World

REMEMBERS = Provider("remembers keys for a while", promises=True, window=True, remembers=True)
LIES = Provider("forgets keys against its promise", promises=True, window=True, remembers=False)
VAGUE = Provider("does not say for how long, and forgets", promises=True, window=False, remembers=False)
HONEST = Provider("promises nothing and forgets", promises=False, window=False, remembers=False)
PROVIDERS = (REMEMBERS, LIES, VAGUE, HONEST)


# Where a mutant is looked for: as small as shows it, so that the search is short.
READY = World(status=Status.READY.value, hold="held", approved=0, steady=True, faults=2)
UNCANCELLED = READY._replace(asked_cancel=True)
CHANGING = World(asked_cancel=True, faults=2)


@dataclass(frozen=True, slots=True)
class Mutant:
    """`breaks` is in the words of what is found."""

    name: str
    protocol: Protocol
    provider: Provider
    breaks: str
    first: World = READY
    rows: tuple[Row, ...] = ROWS


def _changed(number: int, holds: Callable[[Situation], bool]) -> tuple[Row, ...]:
    """The product's rows, the first of this number with another condition."""
    at = next(index for index, row in enumerate(ROWS) if row.number == number)
    return (*ROWS[:at], replace(ROWS[at], holds=holds), *ROWS[at + 1:])


def _completes(number: int) -> tuple[Row, ...]:
    return tuple(replace(row, verdict=Verdict.COMPLETE) if row.number == number else row for row in ROWS)


PENDING = replace(REMEMBERS, answers="pends")
CANCELLED, TWICE = "a refund of a cancelled task", "two refunds of one operation"
UNSEEN = "sent on facts that nobody approved"

MUTANTS = (
    Mutant("no sender's lock", Protocol(lock="none"), REMEMBERS, CANCELLED),
    Mutant("no sender's lock, and a provider that forgets", Protocol(lock="none"), LIES, TWICE, UNCANCELLED),
    Mutant("the lock is taken after the intent", Protocol(lock="after_intent"), REMEMBERS, CANCELLED),
    Mutant("the lease is read again in place of a lock", Protocol(lock="lease_reread"), REMEMBERS, CANCELLED),
    Mutant("the lock is given back once the request is sent", Protocol(lock_kept_until="sent"), REMEMBERS, CANCELLED),
    Mutant("the lock of another hand of the process counts", Protocol(lock_of="process"), REMEMBERS, CANCELLED),
    Mutant("absence is believed without the lock", Protocol(believes_without_lock=True), REMEMBERS, CANCELLED),
    Mutant("unknown is failed", Protocol(unknown_is="failed"), REMEMBERS, "a refund of a failed task"),
    Mutant("unknown is not sent", Protocol(send_in_doubt_is_not_sent=True), REMEMBERS, CANCELLED),
    Mutant("unknown frees the hold", Protocol(unknown_frees_hold=True), REMEMBERS, "with the hold none"),
    Mutant("not found is failed", Protocol(absent_is_failed=True), REMEMBERS, "a refund of a failed task"),
    Mutant("no answer to a look is an absence", Protocol(inconclusive_is_absent=True), REMEMBERS, CANCELLED),
    Mutant("accepted is done", Protocol(pending_is_done=True), PENDING, "completed without a refund"),
    Mutant("a new key for every attempt", Protocol(new_key_per_attempt=True), REMEMBERS, TWICE, UNCANCELLED),
    Mutant("what was executing is sent again", Protocol(executing_found="sent_again"), LIES, TWICE, UNCANCELLED),
    Mutant("what was executing goes back to ready", Protocol(executing_found="ready"), REMEMBERS, CANCELLED),
    Mutant("no guard at the commit", Protocol(guard="none"), REMEMBERS, "illegal move"),
    Mutant("no fence at the commit, the status only", Protocol(guard="status"), REMEMBERS, UNSEEN, CHANGING),
    Mutant("cancelling after submission ends at once", Protocol(cancel_after_submission="ends"), REMEMBERS, CANCELLED),
    Mutant("sent again without a look at the window", Protocol(resends_past_window=True), VAGUE, TWICE, UNCANCELLED),
    Mutant("sent again without a promise of keys", Protocol(resends_without_promise=True, resends_past_window=True),
           HONEST, TWICE, UNCANCELLED),
    Mutant("sent again on facts that changed", Protocol(resends_on_changed_facts=True), REMEMBERS, UNSEEN, CHANGING),
    Mutant("facts are not read again when ready", Protocol(checks_facts_when_ready=False), REMEMBERS, UNSEEN, CHANGING),
    Mutant("the clock is read after the look", Protocol(clock_read_after_look=True), REMEMBERS, CANCELLED),
    Mutant("row 10 does not ask for the lock", Protocol(), REMEMBERS, CANCELLED,
           rows=_changed(10, lambda s: not s.absent_counts)),
    Mutant("row 10 believes the first look", Protocol(), LIES, TWICE, UNCANCELLED,
           rows=_changed(10, lambda s: not s.no_sender)),
    Mutant("row 16 does not wait for the horizon", Protocol(), REMEMBERS, CANCELLED,
           rows=_changed(16, lambda s: s.cancel_wished)),
    Mutant("row 17 does not keep a wished cancel from being sent again", Protocol(), REMEMBERS, "sent again although",
           rows=_changed(17, lambda s: False)),
    Mutant("row 3 completes what is pending", Protocol(), PENDING, "completed without a refund", rows=_completes(3)),
    Mutant("row 6 completes what failed", Protocol(), PENDING, "completed without a refund", rows=_completes(6)),
)
