"""Acting on stored notices: each is a hint to look, at an operation or at a payment, and never a state by itself.

A look that was begun before the notice came may have missed what it tells. So the hint is used up only when somebody
will look from now on: a task that a worker has in hand is taken up again once it is free.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from rq.timeouts import JobTimeoutException

from runtime_app import rows, watch
from runtime_app.bell import ring
from runtime_app.chronicle import Say
from runtime_app.ledger import looks
from runtime_app.notices import words
from runtime_app.notices.courses import Course, course
from runtime_app.notices.record import Heard, Told, keep_evidence, settle
from runtime_app.points import point
from runtime_app.reconciliation.schedule import backoff
from runtime_app.states import OperationState, Status
from runtime_app.transitions import Applied, Guard, Refused, Transition, apply_one
from runtime_app.workflows.types import Ports

log = logging.getLogger(__name__)
_TRIES_MOST = 5  # what it names may be committed a moment later, or sent anew; after so many it counts as unknown
_LOST_MOST = 5  # a task that moves under our hands is read again at once, so often


@dataclass(frozen=True, slots=True)
class Named:
    """The operation that a notice names, and its task, as they are now."""

    id: UUID
    state: OperationState
    provider_ref: str
    payment_ref: str
    proved_at: datetime | None
    task_id: UUID
    revision: int
    status: Status
    lane: str


def work(ports: Ports, *, actor: str, limit: int = 1) -> int:
    """Act on the notices that are due, and ring for the tasks that this woke; returns how many were taken up."""
    taken = _claim(limit, ports.timing.lease)
    lanes = {lane for told in taken if (lane := _hear(told, ports, actor)) is not None}
    for lane in sorted(lanes):
        ring(lane)
    return len(taken)


def is_anything_due() -> bool:
    return bool(rows.run("SELECT 1 FROM runtime_app_notice WHERE due_at <= (SELECT runtime_now()) LIMIT 1"))


def _claim(limit: int, seconds: float) -> list[Told]:
    found = rows.run(
        "UPDATE runtime_app_notice AS n SET tries = n.tries + 1, due_at = runtime_now() + make_interval(secs => %s)"
        " FROM runtime_app_account a WHERE a.id = n.account_id AND n.id IN (SELECT id FROM runtime_app_notice"
        " WHERE due_at <= (SELECT runtime_now()) ORDER BY due_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED)"
        " RETURNING n.id, n.tenant_id, a.id, a.ref, a.provider, n.event_id, n.kind, n.refund_ref, n.operation_ref,"
        " n.payment_ref, n.says, n.occurred_at, n.body_sha256, n.tries, n.outcome",
        [seconds, limit],
    )
    point("notices.claimed")
    return [Told(*row) for row in found]


def _hear(told: Told, ports: Ports, actor: str) -> str | None:
    """Act on one notice; the lane to ring for, if a task was woken. One that raises does not stop the others."""
    try:
        for _ in range(_LOST_MOST):
            named = _named(told)
            way = _course(told, named)
            if named is None:
                _of_nobody(told, ports)
            elif way == Course.WAKE:
                woken = _wake(told, named, ports, actor)
                if woken is None:
                    continue  # it has moved meanwhile
                return named.lane if woken else None
            elif way == Course.WAIT:
                _of_what_was_not_sent(told, named, ports)
            else:
                _of_a_proved_outcome(told, named, ports, look=way == Course.HINT)
            return None
    except (JobTimeoutException, OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("notice %s cannot be acted on", told.id)
    return None


def _named(told: Told) -> Named | None:
    """By our own reference before the provider's, and of this tenant and account only."""
    ours = _uuid(told.operation_ref)
    found = rows.run(
        "SELECT o.id, o.state, coalesce(o.provider_ref, ''), o.payment_ref, e.observed_at, t.id, t.revision, t.status,"
        " t.lane FROM runtime_app_operation o"
        " JOIN runtime_app_task t ON t.id = o.task_id LEFT JOIN runtime_app_evidence e ON e.id = o.resolved_by_id"
        " WHERE o.tenant_id = %s AND o.account = %s AND (o.id = %s OR (o.provider_ref = %s AND o.provider_ref <> ''))"
        " ORDER BY o.id = %s DESC LIMIT 1",
        [told.tenant_id, told.account, ours, told.refund_ref, ours],
    )
    if not found:
        return None
    id, state, provider_ref, payment_ref, proved_at, task_id, revision, status, lane = found[0]
    return Named(
        id, OperationState(state), provider_ref, payment_ref, proved_at, task_id, revision, Status(status), lane
    )


def _course(told: Told, named: Named | None) -> Course:
    if named is None:
        return course(None, told.says)
    return course(named.state, told.says, same_refund=told.refund_ref in ("", named.provider_ref))


def _uuid(text: str) -> UUID | None:
    try:
        named = UUID(text)
    except ValueError:
        return None
    return named if str(named) == text else None  # as we write it ourselves


def _wake(told: Told, named: Named, ports: Ports, actor: str) -> bool | None:
    """Have the task look at once; whether it will, or None when it has moved meanwhile."""
    again, first = backoff(ports.timing, told.tries), told.outcome != words.BUSY
    heard = Heard(told, named.id, _adapter(told, ports), words.ASKED, words.BUSY, again, first)
    said = Say("notice.received", {"operation": str(named.id), "kind": told.kind, "says": told.says})
    transition = Transition(
        events=(said,) if first else (), parts=(heard,), keep_lease=True, wake=True, starts=None
    )
    result = apply_one(Guard(named.task_id, named.revision, named.status), transition, actor=actor)
    if isinstance(result, Applied):
        return result.columns["lease_owner"] is None
    return False if isinstance(result, Refused) else None


def _of_a_proved_outcome(told: Told, named: Named, ports: Ports, *, look: bool) -> None:
    if look and named.state == OperationState.RETURNED:  # nothing follows it but what its payment shows
        looks.ask(told.tenant_id, told.account, named.payment_ref, f"a notice says {told.says} of what had come back")
    with transaction.atomic(durable=True):
        looked = look and watch.hint(named.id)
        says = words.of_a_proved_outcome(named.state, told.says, told.occurred_at, named.proved_at, looked=looked)
        if settle(told, says) and told.outcome != words.BUSY:
            now: datetime = rows.run("SELECT runtime_now()")[0][0]
            keep_evidence(told, named.id, _adapter(told, ports), now)
        point("notices.heard.commit")
    point("notices.heard")


def _of_what_was_not_sent(told: Told, named: Named, ports: Ports) -> None:
    """Somebody is ahead of us, or the proof was none: at last its payment is looked at, which shows it to a person."""
    if told.tries >= _TRIES_MOST:
        why = f"a notice says {told.says} of what was proved not sent"
        looks.ask(told.tenant_id, told.account, named.payment_ref, why)
    _wait(told, words.NOT_YET, words.NOT_SENT, ports)


def _of_nobody(told: Told, ports: Ports) -> None:
    """A refund made outside of us, or one that is being committed right now; its payment can be looked at meanwhile."""
    if told.payment_ref and (not told.outcome or told.tries >= _TRIES_MOST):  # the first look may have come too early
        looks.ask(told.tenant_id, told.account, told.payment_ref, f"a notice ({told.kind}) of a refund not known here")
    last = words.NOT_OURS if told.payment_ref else words.NOBODY
    if told.refund_ref or told.operation_ref:
        _wait(told, words.NOT_YET, last, ports)
    else:
        settle(told, last if told.payment_ref else words.NO_REFUND)


def _wait(told: Told, meanwhile: str, last: str, ports: Ports) -> None:
    """Take it up again a little later, but not for ever."""
    if told.tries < _TRIES_MOST:
        settle(told, meanwhile, again=backoff(ports.timing, told.tries))
    else:
        settle(told, last)


def _adapter(told: Told, ports: Ports) -> str:
    provider = ports.providers.get(told.provider)
    return provider.adapter_version if provider is not None else ""
