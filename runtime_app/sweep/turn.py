"""Whose turn it is: one worker at a time sweeps an account, under a lease on the account's pace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from runtime_app import rows
from runtime_app.ledger.pace_rows import locked
from runtime_app.points import point
from runtime_app.reconciliation.pace import Heard, Why, rate
from runtime_app.timing import Timing


@dataclass(slots=True)
class Turn:
    """An account in this worker's hand until `until`, the very value that stands in its row."""

    account_id: UUID
    tenant_id: UUID
    account: str
    until: datetime
    begun: datetime
    probe: bool = False  # the page that is being read goes first after a trouble

    @property
    def key(self) -> tuple[UUID, str]:
        return self.tenant_id, self.account


@dataclass(frozen=True, slots=True)
class Later:
    """No page may be read now: `closed`, or the bucket is empty for so many seconds."""

    seconds: float
    closed: bool = False


class Lost(Exception):
    """Somebody else has the account by now."""


def claim(seconds: float) -> Turn | None:
    """The sweep that has been due for longest, taken for so many seconds; None when none is due."""
    found = rows.run(
        "UPDATE runtime_app_accountpace AS p SET sweep_due_at = runtime_now() + make_interval(secs => %s)"
        " FROM runtime_app_account a WHERE a.id = p.account_id AND p.account_id IN ("
        " SELECT account_id FROM runtime_app_accountpace WHERE sweep_due_at <= (SELECT runtime_now())"
        " ORDER BY sweep_due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)"
        " RETURNING p.account_id, a.tenant_id, a.ref, p.sweep_due_at, runtime_now()",
        [seconds],
    )
    return Turn(*found[0]) if found else None


def take_page(turn: Turn, timing: Timing) -> Later | None:
    """Take what one page costs and renew the lease; what to wait for, when it may not be read now. Raises Lost."""
    with transaction.atomic(durable=True):
        held = locked([turn.key], timing)
        pace = held.paces[turn.key]
        if pace.sweep_due_at != turn.until:
            raise Lost
        answer = pace.ask([1.0], held.now, timing, sweeping=True)
        turn.probe = not isinstance(answer, Why) and pace.closed_until is not None
        later = None
        if answer == Why.CLOSED and pace.closed_until is not None:
            later = Later((pace.closed_until - held.now).total_seconds(), closed=True)
        elif isinstance(answer, Why):
            later = Later(max(0.0, 1.0 - pace.tokens) / rate(timing))
        turn.until = pace.sweep_due_at = held.now + timedelta(seconds=timing.lease)
        held.keep()
        point("sweep.page.commit")
    point("sweep.page.committed")
    return later


def keep(turn: Turn, seconds: float) -> None:
    """Renew the lease while what was read is recorded. Raises Lost."""
    found = rows.run(
        "UPDATE runtime_app_accountpace SET sweep_due_at = runtime_now() + make_interval(secs => %s)"
        " WHERE account_id = %s AND sweep_due_at = %s RETURNING sweep_due_at",
        [seconds, turn.account_id, turn.until],
    )
    if not found:
        raise Lost
    turn.until = found[0][0]


def tell(turn: Turn, heard: Heard, timing: Timing) -> None:
    """What a page says of the provider's health. Raises Lost."""
    if not heard.trouble and not turn.probe:
        return
    with transaction.atomic(durable=True):
        held = locked([turn.key], timing)
        pace = held.paces[turn.key]
        if pace.sweep_due_at != turn.until:
            raise Lost
        pace.hear([heard], held.now, timing, sweeps=False, probe=heard if turn.probe else None)
        held.keep()
        point("sweep.tell.commit")
    point("sweep.tell.committed")


def give_back(turn: Turn, *, again_in: float | None, whole: bool) -> None:
    """The account is free: to be swept again after so many seconds, or only when that is wished for anew. With `whole`,
    what had been sent before this sweep began was in the list by now, or is not worth another one.
    """
    rows.run(
        "UPDATE runtime_app_accountpace SET sweep_since = runtime_now(),"
        " sweep_due_at = runtime_now() + make_interval(secs => %s),"
        " swept_at = CASE WHEN %s THEN greatest(swept_at, %s) ELSE swept_at END"
        " WHERE account_id = %s AND sweep_due_at = %s",
        [again_in, whole, turn.begun, turn.account_id, turn.until],
    )
