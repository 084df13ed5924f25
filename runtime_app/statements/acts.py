"""What follows from a line: the provider is asked, or a person is. No act here moves money or proves an outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from runtime_app import rows, watch
from runtime_app.chronicle import Say
from runtime_app.ledger import looks
from runtime_app.models import Account, Operation, StatementDay, StatementLine
from runtime_app.states import UNRESOLVED, Status
from runtime_app.transitions import Applied, Guard, Transition, apply_one

_LOST_MOST = 5  # a task that moves under our hands is read again at once, so often


@dataclass(frozen=True, slots=True)
class TaskNow:
    """The operation's task as it stands."""

    guard: Guard
    attention: str | None
    lane: str


def task_now(operation_id: UUID) -> TaskNow:
    found = rows.run(
        "SELECT t.id, t.revision, t.status, t.attention, t.lane FROM runtime_app_task t JOIN runtime_app_operation o"
        " ON o.task_id = t.id WHERE o.id = %s",
        [operation_id],
    )
    id, revision, status, attention, lane = found[0]
    return TaskNow(Guard(id, revision, Status(status)), attention, lane)


def ask_operation(operation: Operation, line: StatementLine, day: StatementDay, *, actor: str, first: bool) -> str:
    """Have the provider asked about it; the lane to ring for. Only what is in doubt is the task's own to ask."""
    if operation.state not in UNRESOLVED:
        watch.hint(operation.id)
        return "default"
    seen = Say("statement.line_seen", {"operation": str(operation.id), "day": day.day.isoformat(), "line": line.ref})
    for _ in range(_LOST_MOST):
        now = task_now(operation.id)
        transition = Transition(events=(seen,) if first else (), keep_lease=True, wake=True, starts=None)
        if isinstance(apply_one(now.guard, transition, actor=actor), Applied):
            return now.lane
    return now.lane  # it moves by itself, so it is looked at anyway


def ask_payment(account: Account, line: StatementLine) -> None:
    """Have all refunds of the payment looked at, unless that is about to be done."""
    due = rows.run(
        "SELECT 1 FROM runtime_app_paymentlook WHERE account_id = %s AND payment_ref = %s AND due_at IS NOT NULL",
        [account.id, line.payment_ref],
    )
    if not due:
        looks.ask(account.tenant_id, account.ref, line.payment_ref, f"a statement shows {line.ref[:80]}, unknown here")


def told(line: StatementLine) -> Mapping[str, Any]:
    """The line as it stands in evidence and in a case."""
    return {
        "ref": line.ref, "kind": line.kind, "amount_minor": line.amount_minor, "currency": line.currency,
        "provider_ref": line.provider_ref, "our_ref": line.our_ref, "payment_ref": line.payment_ref,
        "occurred_at": line.occurred_at.isoformat(), "live": line.live, "note": line.note,
    }
