"""The same frozen request once more under the same key, and the request to cancel: only where the table says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runtime_app.adapters.payments.types import (
    Declined,
    KeyConflict,
    KeyInProgress,
    Mismatch,
    NotSent,
    OutcomeUnknown,
    ProviderRefund,
    RefundRequest,
    Succeeded,
    Throttled,
)
from runtime_app.chronicle import Say
from runtime_app.ids import new_id
from runtime_app.ledger.calls import BeginCall, EndCall
from runtime_app.ledger.operations import LearnOperation, UnlessCancelWished
from runtime_app.ledger.pace import overheard
from runtime_app.money import Money
from runtime_app.reconciliation.reading import Reading
from runtime_app.reconciliation.schedule import next_look
from runtime_app.reconciliation.table import Finding
from runtime_app.states import OperationState
from runtime_app.transitions import NOW, After, Part, Transition
from runtime_app.workflows.refund.agreement import StillAgreed
from runtime_app.workflows.refund.facts import RefundFacts
from runtime_app.workflows.types import Ports

Follow = Callable[[RefundFacts, Ports, Reading, EndCall], Transition]


def resend(
    facts: RefundFacts, ports: Ports, known: LearnOperation, end: EndCall, told: Say, follow: Follow
) -> Transition:
    """`follow` judges what the resend answered by the decision table."""
    call = BeginCall(id=new_id(), operation_id=known.id, kind="resend")
    return Transition(
        events=(told, Say("operation.resubmitted_same_key", {"operation": str(known.id), "number": known.resends + 1})),
        parts=(UnlessCancelWished(), StillAgreed.of(facts), end, call,
               replace(known, state=OperationState.UNKNOWN, resends=known.resends + 1,
                       check=After(next_look(ports.timing, known.checks)), send_within=ports.timing.lease)),
        if_refused=dict.fromkeys(("cancel_wished", "not_agreed"), Transition(events=(told,), due=NOW, starts=None)),
        then=_sending(call, known, follow),
        lock=known.id,
    )


def _sending(call: BeginCall, known: LearnOperation, follow: Follow) -> Callable[[RefundFacts, Ports], Transition]:
    def effect(facts: RefundFacts, ports: Ports) -> Transition:
        assert facts.operation is not None
        operation = replace(facts.operation, resends=known.resends + 1, checks=known.checks, absents=known.absents)
        facts = replace(facts, operation=operation)
        request = RefundRequest(
            operation_id=operation.id, payment_ref=operation.payment_ref, body=operation.request_body,
            body_sha256=operation.request_sha256, api_version=operation.api_version,
            amount=Money(operation.amount_minor, operation.currency),
        )
        if not ports.may_send(operation.id):
            return Transition(due=NOW)  # the call stays without an answer, and the next look asks what happened
        result = ports.provider(facts.account).create_refund(
            facts.account, request, idempotency_key=operation.idempotency_key, resend=True, deadline=ports.sending
        )
        seen = _reading(result, str(operation.id))
        end = EndCall(call.id, operation.id, "provider_response", "unknown", seen.finding.value, result.seen)
        transition = follow(facts, ports, seen, end)
        answered = Say("operation.resend_answered", {"finding": seen.finding.value})
        parts = transition.parts
        if isinstance(result, Throttled):
            parts = (overheard(operation.account, ports.timing, result.retry_after), *parts)
        return replace(transition, events=(answered, *transition.events), parts=parts)

    return effect


def _reading(result: object, operation_ref: str) -> Reading:
    match result:
        case OutcomeUnknown(key_burned=True):
            return Reading(Finding.RESEND_BURNED)
        case KeyInProgress() | Throttled() | NotSent():
            return Reading(Finding.RESEND_IN_USE)
        case KeyConflict():
            return Reading(Finding.RESEND_CONFLICT)
        case Mismatch(nameless=True):
            return Reading(Finding.RESEND_ACCEPTED)
        case Mismatch(refund=refund, differs=differs):
            own = refund.operation_ref in (None, operation_ref)  # else its reference is the other one's
            return Reading(Finding.MISMATCH, refund if own else None, (refund,), _first_known(differs))
        case OutcomeUnknown() | Declined():
            return Reading(Finding.RESEND_UNKNOWN)  # a refusal of a resend may be our own first success speaking
        case _:
            return Reading(Finding.RESEND_ACCEPTED)


def _first_known(differs: tuple[str, ...]) -> str:
    return next((name for name in ("payment", "currency", "amount") if name in differs), "amount")


def send_cancel(
    facts: RefundFacts, ports: Ports, known: LearnOperation, refund: ProviderRefund, end: EndCall, told: Say
) -> Transition:
    """Ask the provider to cancel what it has accepted. Its answer is no proof: the next look is."""
    call = BeginCall(id=new_id(), operation_id=known.id, kind="cancel")
    look = After(next_look(ports.timing, known.checks))

    def effect(facts: RefundFacts, ports: Ports) -> Transition:
        result = ports.provider(facts.account).cancel_refund(
            facts.account, refund_ref=refund.ref, idempotency_key=f"{known.id}:cancel", deadline=ports.deadline
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
