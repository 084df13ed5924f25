"""The late watch: a provider may still act on a request after its absence was proved. Not impossible, but detected.

Operations proved not executed are looked at again for a while. One that turns up after all follows the money: the
operation succeeds late, the balance is consumed, the task keeps its end and carries a mark, and a case is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from runtime_app import rows
from runtime_app.adapters.payments.types import Deadline, Found, ProviderRefund, RefundStatus
from runtime_app.chronicle import Say
from runtime_app.ids import new_id
from runtime_app.ledger.balances import ConsumeLate
from runtime_app.ledger.calls import BeginCall, EndCall
from runtime_app.ledger.operations import LearnOperation
from runtime_app.states import OperationState, Status
from runtime_app.transitions import Applied, Guard, Transition, apply_one
from runtime_app.workflows.types import Ports

CASE = "LATE_EXECUTION"


@dataclass(frozen=True, slots=True)
class Watched:
    id: UUID
    task_id: UUID
    account: str
    payment_ref: str
    amount_minor: int
    currency: str
    revision: int
    status: Status
    attention: str | None


def watch(ports: Ports, *, actor: str, limit: int = 20) -> int:
    """Look at the operations whose next look is due; returns how many were looked at."""
    timing = ports.timing
    found = rows.run(
        "UPDATE runtime_app_operation AS o SET next_check_at = CASE"
        " WHEN o.last_possible_send_at > runtime_now() - make_interval(secs => %s)"
        " THEN runtime_now() + make_interval(secs => %s) END"
        " FROM runtime_app_task t WHERE t.id = o.task_id AND o.id IN ("
        " SELECT id FROM runtime_app_operation WHERE state = 'not_executed' AND next_check_at <= (SELECT runtime_now())"
        " ORDER BY next_check_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED)"
        " RETURNING o.id, o.task_id, o.account, o.payment_ref, o.amount_minor, o.currency, t.revision, t.status,"
        " t.attention",
        [timing.late_watch, timing.late_watch_every, limit],
    )
    for row in found:
        _look(Watched(row[0], row[1], row[2], row[3], row[4], row[5], row[6], Status(row[7]), row[8]), ports, actor)
    return len(found)


def is_anything_due() -> bool:
    return bool(
        rows.run(
            "SELECT 1 FROM runtime_app_operation WHERE state = 'not_executed'"
            " AND next_check_at <= (SELECT runtime_now()) LIMIT 1"
        )
    )


def _look(watched: Watched, ports: Ports, actor: str) -> None:
    guard = Guard(watched.task_id, watched.revision, watched.status)
    call = BeginCall(id=new_id(), operation_id=watched.id, kind="query")
    if not isinstance(apply_one(guard, Transition(parts=(call,), starts=None), actor=actor), Applied):
        return
    answer = ports.payments.find_refunds(
        ports.account, operation_id=watched.id, payment_ref=watched.payment_ref, currency=watched.currency,
        deadline=Deadline.after(ports.timing.connect_timeout + ports.timing.read_timeout),
    )
    refund = _alive(answer.refunds) if isinstance(answer, Found) else None
    moved = refund is not None and refund.status == RefundStatus.SUCCEEDED and _in(refund, watched.currency)
    outcome = "succeeded" if moved else "pending" if refund else "unknown"
    end = EndCall(call.id, watched.id, "provider_query", outcome, "late_watch", answer.seen)
    if refund is None:
        transition = Transition(parts=(end,), starts=None)
    else:
        transition = _landed(watched, refund, end) if moved else _accepted(watched, end)
    apply_one(guard, transition, actor=actor)


def _alive(refunds: tuple[ProviderRefund, ...]) -> ProviderRefund | None:
    """One whose money has moved, else one that may still move it."""
    ended = {RefundStatus.FAILED, RefundStatus.CANCELED}
    alive = [refund for refund in refunds if refund.status not in ended]
    return next((refund for refund in alive if refund.status == RefundStatus.SUCCEEDED), alive[0] if alive else None)


def _in(refund: ProviderRefund, currency: str) -> bool:
    return refund.amount.currency == currency


def _accepted(watched: Watched, end: EndCall) -> Transition:
    """The provider has it after all, and no money has moved: people are told, and it is looked at again."""
    return Transition(
        events=_opened(watched, "the provider has accepted it after its absence had been proved"),
        columns={"attention": CASE}, parts=(end,), starts=None,
    )


def _opened(watched: Watched, why: str) -> tuple[Say, ...]:
    return () if watched.attention == CASE else (Say("case.opened", {"class": CASE, "why": why}),)


def _landed(watched: Watched, refund: ProviderRefund, end: EndCall) -> Transition:
    return Transition(
        events=(
            Say("operation.succeeded", {"operation": str(watched.id), "provider_ref": refund.ref, "late": True}),
            *_opened(watched, "it was executed after its absence had been proved"),
        ),
        columns={"attention": CASE},
        parts=(
            end, ConsumeLate(watched.account, watched.payment_ref, refund.amount.minor),
            LearnOperation(
                watched.id, OperationState.SUCCEEDED, None, end.id, refund.ref, case_class=CASE, note="late"
            ),
        ),
        starts=None,
    )
