"""Finding out: ask the provider by our own reference, follow the decision table, record what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from runtime_app.adapters.payments.types import (
    Absent,
    Declined,
    FindResult,
    Found,
    KeyConflict,
    KeyInProgress,
    Mismatch,
    NotSent,
    OutcomeUnknown,
    ProviderRefund,
    RefundRequest,
    RefundStatus,
    Succeeded,
    Throttled,
)
from runtime_app.chronicle import Say
from runtime_app.ids import new_id
from runtime_app.ledger.balances import EndHold
from runtime_app.ledger.calls import BeginCall, EndCall
from runtime_app.ledger.operations import LearnOperation, UnlessCancelWished
from runtime_app.money import Money
from runtime_app.reconciliation.schedule import next_look
from runtime_app.reconciliation.table import Finding, Row, Situation, Verdict, decide
from runtime_app.states import OperationState, Status
from runtime_app.transitions import NOW, After, Part, Transition
from runtime_app.workflows.refund.agreement import StillAgreed
from runtime_app.workflows.refund.facts import OperationFacts, RefundFacts
from runtime_app.workflows.refund.judge import still_right
from runtime_app.workflows.refund.submit import tell_order_system
from runtime_app.workflows.types import Ports

Effect = Callable[[RefundFacts, Ports], Transition]
FROZEN_BY = frozenset({"MISMATCH", "DUPLICATE_EXECUTION", "KEY_CONFLICT"})  # a person looks first


def on_reconciling(facts: RefundFacts, ports: Ports) -> Transition:
    """Write down that the provider is asked, then ask."""
    operation = _operation(facts)
    if operation.case_class in FROZEN_BY:
        return Transition(due=None)
    call = BeginCall(id=new_id(), operation_id=operation.id, kind="query")
    return Transition(parts=(call,), then=ask(call), lock=operation.id)


def ask(call: BeginCall) -> Effect:
    def effect(facts: RefundFacts, ports: Ports) -> Transition:
        operation = _operation(facts)
        answer = ports.payments.find_refunds(
            ports.account, operation_id=operation.id, payment_ref=operation.payment_ref, currency=operation.currency,
            deadline=ports.deadline,
        )
        finding, refund = read(answer, operation)
        end = EndCall(call.id, operation.id, "provider_query", *_outcome(finding), answer.seen)
        return follow(facts, ports, finding, refund, end)

    return effect


def read(answer: FindResult, operation: OperationFacts) -> tuple[Finding, ProviderRefund | None]:
    """What a look-up shows of this operation."""
    if isinstance(answer, Absent):
        if operation.provider_ref is not None:
            return Finding.INCONCLUSIVE, None  # the provider has told us of it: not to see it proves nothing
        alike = any(_looks_alike(refund, operation) for refund in answer.lookalikes)
        return (Finding.LOOKALIKES if alike else Finding.ABSENT), None
    if not isinstance(answer, Found):
        return Finding.INCONCLUSIVE, None
    alive = [r for r in answer.refunds if r.status not in {RefundStatus.FAILED, RefundStatus.CANCELED}]
    if len(alive) > 1:
        return Finding.DUPLICATE, alive[0]
    refund = (alive or list(answer.refunds))[0]
    asked = Money(operation.amount_minor, operation.currency)
    if refund.amount != asked or refund.payment_ref != operation.payment_ref:
        return Finding.MISMATCH, refund
    if refund.status == RefundStatus.SUCCEEDED:
        return Finding.SUCCEEDED, refund
    return (Finding.PENDING if alive else Finding.FAILED), refund


def _looks_alike(refund: ProviderRefund, operation: OperationFacts) -> bool:
    """A refund without an id, of our amount, made after our first send: a suggestion for a person, never proof."""
    since, made = operation.first_submit_at, refund.created_at
    near = since is None or made is None or made >= since - timedelta(minutes=5)
    return refund.operation_ref is None and near and refund.amount == Money(operation.amount_minor, operation.currency)


def _outcome(finding: Finding) -> tuple[str, str]:
    outcomes = {Finding.SUCCEEDED: "succeeded", Finding.PENDING: "pending", Finding.FAILED: "declined"}
    return outcomes.get(finding, "unknown"), finding.value


def follow(
    facts: RefundFacts, ports: Ports, finding: Finding, refund: ProviderRefund | None, end: EndCall
) -> Transition:
    """The transition the decision table asks for."""
    operation = _operation(facts)
    absents = operation.absents + (finding in {Finding.ABSENT, Finding.LOOKALIKES})
    situation = _situation(facts, ports, finding, refund, absents)
    row = decide(situation)
    if row.verdict == Verdict.RESEND and not still_right(facts, ports):
        row = decide(replace(situation, may_resend=False))
    known = LearnOperation(
        operation.id, operation.state, None, provider_ref=refund.ref if refund else None, checks=operation.checks + 1,
        absents=absents, resends=operation.resends, resend_disabled=operation.resend_disabled,
        note=f"row {row.number}: {finding.value}",
    )
    return _transition(facts, ports, row, known, refund, end)


def _situation(
    facts: RefundFacts, ports: Ports, finding: Finding, refund: ProviderRefund | None, absents: int
) -> Situation:
    operation, timing, now = _operation(facts), ports.timing, facts.task.now
    capabilities = ports.payments.capabilities(ports.account)
    age = _since(operation.first_submit_at, now)
    window = max(0.0, (capabilities.key_window or 0.0) - timing.key_margin)
    ended = operation.resend_disabled or operation.resends >= timing.resend_most or age >= window
    in_flight = capabilities.max_in_flight if capabilities.max_in_flight is not None else timing.max_in_flight
    return Situation(
        finding=finding,
        cancel_wished=facts.task.cancel_wished_at is not None,
        absent_counts=absents >= timing.absent_count and age >= timing.absent_age,
        horizon_passed=_since(operation.last_possible_send_at, now) >= in_flight,
        no_sender=ports.sender_holds(operation.id) and _since(operation.last_possible_send_at, now) >= 0,
        may_resend=not ended and capabilities.replays == "all" and ports.may_send(operation.id),
        resend_ended=ended,
        pending_too_long=age >= timing.pending_sla,
        can_cancel=refund is not None and refund.status in capabilities.can_cancel,
        handover_passed=age >= timing.handover,
    )


def _since(then: datetime | None, now: datetime) -> float:
    return (now - then).total_seconds() if then else 0.0


def _transition(
    facts: RefundFacts, ports: Ports, row: Row, known: LearnOperation, refund: ProviderRefund | None, end: EndCall
) -> Transition:
    told = Say("operation.checked", {"finding": end.finding, "row": row.number, "absents": known.absents})
    match row.verdict:
        case Verdict.COMPLETE | Verdict.COMPLETE_TOO_LATE:
            return _complete(facts, row, known, refund, end, told)
        case Verdict.DECLINED:
            return _declined(facts, known, refund, end, told)
        case Verdict.NOT_EXECUTED:
            return _not_executed(ports, known, end, told)
        case Verdict.RESEND:
            return _resend(facts, ports, known, end, told)
        case Verdict.SEND_CANCEL:
            return _send_cancel(facts, ports, known, refund, end, told)
    pending = row.verdict in {Verdict.WAIT_PENDING, Verdict.CASE_STALE_PENDING}
    look = NOW if row.verdict == Verdict.LOOK_AGAIN else After(next_look(ports.timing, known.checks, pending=pending))
    case = row.verdict.value.partition("case:")[2] or None
    opened = case is not None and _operation(facts).case_class != case
    frozen = case in FROZEN_BY
    state = OperationState.PENDING if pending else OperationState.UNKNOWN
    if end.finding == Finding.INCONCLUSIVE:
        state = known.state  # a look that showed nothing takes nothing back
    return Transition(
        events=(told, *((Say("case.opened", {"class": case, "why": row.when}),) if opened else ())),
        parts=(end, replace(known, state=state, check=None if frozen else look, case_class=case,
                            resend_disabled=known.resend_disabled or row.verdict == Verdict.STOP_RESENDS)),
        columns={"attention": case} if case else {},
        due=None if frozen else look,
    )


def _complete(
    facts: RefundFacts, row: Row, known: LearnOperation, refund: ProviderRefund | None, end: EndCall, told: Say
) -> Transition:
    operation = _operation(facts)
    ref = refund.ref if refund else None
    return Transition(
        to=Status.COMPLETED,
        events=(told, Say("operation.succeeded", {"operation": str(operation.id), "provider_ref": ref}),
                Say("hold.consumed"), Say("task.completed")),
        if_wished=(Say("cancel.too_late"),),
        columns={"attention": None},
        parts=(end, EndHold(consumed=True),
               replace(known, state=OperationState.SUCCEEDED, evidence_id=end.id),
               tell_order_system(operation.id, facts, operation.payment_ref, operation.amount_minor, ref)),
    )


def _declined(
    facts: RefundFacts, known: LearnOperation, refund: ProviderRefund | None, end: EndCall, told: Say
) -> Transition:
    wished = facts.task.cancel_wished_at is not None
    code = (refund.failure_reason if refund else None) or "failed"
    last = Say("task.cancelled", {"why": "cancelled as wished; the provider did not do it"}) if wished else Say(
        "task.failed", {"code": "declined", "why": f"The provider did not do it: {code}."})
    return Transition(
        to=Status.CANCELLED if wished else Status.FAILED,
        events=(
            told, Say("operation.declined", {"operation": str(known.id), "code": code}), Say("hold.released"), last,
        ),
        columns={"attention": None},
        parts=(end, EndHold(consumed=False), replace(known, state=OperationState.FAILED, evidence_id=end.id)),
    )


def _not_executed(ports: Ports, known: LearnOperation, end: EndCall, told: Say) -> Transition:
    return Transition(
        to=Status.CANCELLED,
        events=(told, Say("operation.not_executed", {"operation": str(known.id)}), Say("hold.released"),
                Say("task.cancelled", {"why": "cancelled as wished; it is proved that nothing was refunded"})),
        columns={"attention": None},
        parts=(end, EndHold(consumed=False), replace(known, state=OperationState.NOT_EXECUTED, evidence_id=end.id,
                                                          check=After(ports.timing.late_watch_every))),
    )


def _resend(facts: RefundFacts, ports: Ports, known: LearnOperation, end: EndCall, told: Say) -> Transition:
    call = BeginCall(id=new_id(), operation_id=known.id, kind="resend")
    return Transition(
        events=(told, Say("operation.resubmitted_same_key", {"operation": str(known.id), "number": known.resends + 1})),
        parts=(UnlessCancelWished(), StillAgreed.of(facts), end, call,
               replace(known, state=OperationState.UNKNOWN, resends=known.resends + 1,
                       check=After(next_look(ports.timing, known.checks)), send_within=ports.timing.lease)),
        if_refused=dict.fromkeys(("cancel_wished", "not_agreed"), Transition(events=(told,), due=NOW, starts=None)),
        then=_resending(call, known),
        lock=known.id,
    )


def _resending(call: BeginCall, known: LearnOperation) -> Effect:
    def effect(facts: RefundFacts, ports: Ports) -> Transition:
        operation = replace(_operation(facts), resends=known.resends + 1, checks=known.checks, absents=known.absents)
        facts = replace(facts, operation=operation)
        request = RefundRequest(
            operation_id=operation.id, payment_ref=operation.payment_ref, body=operation.request_body,
            body_sha256=operation.request_sha256, api_version=operation.api_version,
            amount=Money(operation.amount_minor, operation.currency),
        )
        if not ports.may_send(operation.id):
            return Transition(due=NOW)  # the call stays without an answer, and the next look asks what happened
        result = ports.payments.create_refund(
            ports.account, request, idempotency_key=operation.idempotency_key, resend=True, deadline=ports.sending
        )
        finding = _resend_finding(result)
        end = EndCall(call.id, operation.id, "provider_response", "unknown", finding.value, result.seen)
        transition = follow(facts, ports, finding, None, end)
        answered = Say("operation.resend_answered", {"finding": finding.value})
        return replace(transition, events=(answered, *transition.events))

    return effect


def _resend_finding(result: object) -> Finding:
    match result:
        case OutcomeUnknown(key_burned=True):
            return Finding.RESEND_BURNED
        case KeyInProgress() | Throttled() | NotSent():
            return Finding.RESEND_IN_USE
        case KeyConflict():
            return Finding.RESEND_CONFLICT
        case Mismatch():
            return Finding.MISMATCH
        case OutcomeUnknown() | Declined():
            return Finding.RESEND_UNKNOWN  # a refusal of a resend may be our own first success speaking
        case _:
            return Finding.RESEND_ACCEPTED


def _send_cancel(
    facts: RefundFacts, ports: Ports, known: LearnOperation, refund: ProviderRefund | None, end: EndCall, told: Say
) -> Transition:
    assert refund is not None  # row 4 holds only for a refund that was found
    call = BeginCall(id=new_id(), operation_id=known.id, kind="cancel")
    look = After(next_look(ports.timing, known.checks))

    def effect(facts: RefundFacts, ports: Ports) -> Transition:
        result = ports.payments.cancel_refund(
            ports.account, refund_ref=refund.ref, idempotency_key=f"{known.id}:cancel", deadline=ports.deadline
        )
        parts: tuple[Part, ...] = (
            EndCall(call.id, known.id, "provider_response", "unknown", type(result).__name__, result.seen),
        )
        ended = isinstance(result, Succeeded) or (isinstance(result, Declined) and result.refund is not None)
        return Transition(parts=parts, due=NOW if ended else look)

    return Transition(
        events=(told, Say("operation.cancel_submitted", {"operation": str(known.id), "provider_ref": refund.ref})),
        parts=(end, call, replace(known, state=OperationState.PENDING, check=look)),
        then=effect, lock=known.id,
    )


def _operation(facts: RefundFacts) -> OperationFacts:
    assert facts.operation is not None  # a task reconciles only with an operation
    return facts.operation
