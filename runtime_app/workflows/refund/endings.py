"""How an operation in doubt ends: the transition for each proved outcome, whoever proved it."""

from __future__ import annotations

from dataclasses import replace

from runtime_app.chronicle import Say
from runtime_app.ledger.balances import ConsumeLate, EndHold
from runtime_app.ledger.calls import EndCall
from runtime_app.ledger.cases import CloseCases, OpenCase
from runtime_app.ledger.operations import LearnOperation
from runtime_app.reconciliation.classes import BY_PROOF, graver
from runtime_app.reconciliation.reading import Reading, listed
from runtime_app.states import OperationState, Status
from runtime_app.transitions import After, Part, Transition
from runtime_app.workflows.refund.facts import RefundFacts
from runtime_app.workflows.refund.submit import tell


def complete(
    facts: RefundFacts, known: LearnOperation, seen: Reading, end: EndCall, told: Say, *, duplicate: bool = False
) -> Transition:
    """Done. Of a duplicate the first one is ours, the others are excess that a person must deal with."""
    operation, ref = facts.operation, seen.refund.ref if seen.refund else None
    assert operation is not None
    parts: tuple[Part, ...] = (
        end, EndHold(consumed=True), CloseCases(operation.id, "succeeded"),
        replace(known, state=OperationState.SUCCEEDED, evidence_id=end.id),
        tell(operation.id, facts, operation.payment_ref, operation.amount_minor, ref),
    )
    events: tuple[Say, ...] = (
        told, Say("operation.succeeded", {"operation": str(operation.id), "provider_ref": ref}),
        Say("hold.consumed"), *_closed(facts), Say("task.completed"),
    )
    if duplicate:
        parts += _excess(facts, seen)
        why = "the provider executed it more than once"
        events += (Say("case.opened", {"class": "DUPLICATE_EXECUTION", "why": why}),)
    return Transition(
        to=Status.COMPLETED, events=events, if_wished=(Say("cancel.too_late"),), parts=parts,
        columns={"attention": _mark(facts, "DUPLICATE_EXECUTION" if duplicate else None)},
    )


def _mark(facts: RefundFacts, mark: str | None = None) -> str | None:
    """The mark that the task goes on wearing: of what a proof does not close, the gravest."""
    for case in facts.cases:
        if case.class_name not in BY_PROOF:
            mark = case.class_name if mark is None else graver(mark, case.class_name)
    return mark


def _excess(facts: RefundFacts, seen: Reading) -> tuple[Part, ...]:
    operation = facts.operation
    assert operation is not None
    others = [r for r in seen.alive if r is not seen.refund]
    here = [r for r in others if (r.payment_ref, r.amount.currency) == (operation.payment_ref, operation.currency)]
    extra = sum(r.amount.minor for r in here)
    moved = operation.amount_minor + extra
    case = OpenCase(
        "DUPLICATE_EXECUTION", operation.account, operation.payment_ref, operation.order_ref, operation.id,
        extra or operation.amount_minor, operation.currency, why="The provider executed it more than once.",
        details={"refunds": listed(seen.alive)},
    )
    taken = (ConsumeLate(operation.account, operation.payment_ref, moved),) if extra else ()
    return (case, *taken)


def _closed(facts: RefundFacts) -> tuple[Say, ...]:
    """What was open only for want of a proof closes with it."""
    return tuple(
        Say("case.closed", {"class": case.class_name, "why": "the outcome is proved"})
        for case in facts.cases if case.class_name in BY_PROOF
    )


def declined(facts: RefundFacts, known: LearnOperation, seen: Reading, end: EndCall, told: Say) -> Transition:
    wished = facts.task.cancel_wished_at is not None
    code = (seen.refund.failure_reason if seen.refund else None) or "failed"
    last = Say("task.cancelled", {"why": "cancelled as wished; the provider did not do it"}) if wished else Say(
        "task.failed", {"code": "declined", "why": f"The provider did not do it: {code}."})
    return Transition(
        to=Status.CANCELLED if wished else Status.FAILED,
        events=(
            told, Say("operation.declined", {"operation": str(known.id), "code": code}), Say("hold.released"),
            *_closed(facts), last,
        ),
        columns={"attention": _mark(facts)},
        parts=(end, EndHold(consumed=False), CloseCases(known.id, "failed"),
               replace(known, state=OperationState.FAILED, evidence_id=end.id)),
    )


def not_executed(facts: RefundFacts, known: LearnOperation, end: EndCall, told: Say, *, watch_in: float) -> Transition:
    """Proved absent, and a cancel was wished."""
    why = "cancelled as wished; it is proved that nothing was refunded"
    return Transition(
        to=Status.CANCELLED,
        events=(told, Say("operation.not_executed", {"operation": str(known.id)}), Say("hold.released"),
                *_closed(facts), Say("task.cancelled", {"why": why})),
        columns={"attention": _mark(facts)},
        parts=(end, EndHold(consumed=False), CloseCases(known.id, "not_executed"),
               replace(known, state=OperationState.NOT_EXECUTED, evidence_id=end.id, check=After(watch_in))),
    )
