"""A provider that cannot be asked: what its statement shows goes through the decision table like an answer."""

from __future__ import annotations

from runtime_app.adapters.payments.types import ProviderRefund, RefundStatus
from runtime_app.leases import Claimed
from runtime_app.ledger.calls import EndCall
from runtime_app.models import Operation, StatementLine, Task
from runtime_app.money import Money
from runtime_app.reconciliation.reading import read_found
from runtime_app.statements import calendar, gathering
from runtime_app.states import UNRESOLVED, Status
from runtime_app.transitions import Applied, Guard, apply_one
from runtime_app.workflows.refund import facts as refund_facts
from runtime_app.workflows.refund import reconcile
from runtime_app.workflows.types import Ports


def by_lines(operation: Operation, ports: Ports, *, actor: str) -> bool:
    """Apply rows 1 to 8 to what all lines of the operation show; False when the task is not at that, or has moved."""
    lines = list(StatementLine.objects.filter(operation=operation).select_related("statement", "day__account"))
    refunds = _refunds(operation, lines)
    claimed = _as_it_stands(operation)
    if claimed.status != Status.RECONCILING or not refunds:
        return False
    facts = refund_facts.load([claimed])[claimed.id]
    if facts.operation is None or facts.operation.id != operation.id or facts.operation.state not in UNRESOLVED:
        return False
    seen = read_found(refunds, reconcile.asked(facts.operation))
    outcome = {"found_succeeded": "succeeded", "found_failed": "declined"}.get(seen.finding.value, "unknown")
    shown = gathering.seen(lines[0], lines[0].day)
    end = EndCall(None, operation.id, "statement_line", outcome, seen.finding.value, shown)
    guard = Guard(claimed.id, claimed.revision, claimed.status)
    return isinstance(apply_one(guard, reconcile.follow(facts, ports, seen, end), actor=actor), Applied)


def _as_it_stands(operation: Operation) -> Claimed:
    """The task as a worker would have it in hand; nobody's lease is touched, the guard is by status and revision."""
    task = Task.objects.get(id=operation.task_id)
    facts = {name: getattr(task, name) for name in Claimed.__dataclass_fields__ if name != "now"}
    return Claimed(**facts | {"status": Status(task.status), "now": calendar.now()})


def _refunds(operation: Operation, lines: list[StatementLine]) -> tuple[ProviderRefund, ...]:
    """Each booking that went out is a refund that was done; one that came back had failed."""
    back = sum(line.amount_minor > 0 for line in lines)
    return tuple(
        ProviderRefund(
            ref=line.provider_ref or line.ref, operation_ref=str(operation.id),
            payment_ref=line.payment_ref or operation.payment_ref, amount=Money(-line.amount_minor, line.currency),
            status=RefundStatus.FAILED if place < back else RefundStatus.SUCCEEDED,
            created_at=line.occurred_at,
        )
        for place, line in enumerate(sorted((n for n in lines if n.amount_minor < 0), key=lambda n: n.occurred_at))
    )
