"""The send, and what its answer means. It runs only behind the commit of the frozen request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from runtime_app.adapters.payments.types import (
    CreateResult,
    Declined,
    KeyConflict,
    KeyInProgress,
    Mismatch,
    NotSent,
    Observation,
    OutcomeUnknown,
    PaymentProvider,
    Pending,
    ProviderAccount,
    ProviderRefund,
    RefundRequest,
    Succeeded,
    Throttled,
)
from runtime_app.chronicle import Say
from runtime_app.ledger.balances import EndHold
from runtime_app.ledger.calls import BeginCall, EndCall
from runtime_app.ledger.cases import OpenCase
from runtime_app.ledger.operations import LearnOperation, SubmitOperation
from runtime_app.ledger.pace import AtPace, overheard
from runtime_app.money import Money
from runtime_app.outbox import Tell, tell_order_system
from runtime_app.reconciliation.classes import CLASSES
from runtime_app.reconciliation.reading import MISMATCH_CLASS, listed
from runtime_app.reconciliation.schedule import backoff, next_look
from runtime_app.states import OperationState, Status
from runtime_app.transitions import NOW, After, Transition
from runtime_app.workflows.refund.facts import OperationFacts, RefundFacts
from runtime_app.workflows.types import Ports

Effect = Callable[[RefundFacts, Ports], Transition]


@dataclass(frozen=True, slots=True)
class Sent:
    """One send and what it concerns, for the words and rows of its outcome."""

    operation: SubmitOperation
    call: BeginCall
    result: CreateResult
    facts: RefundFacts
    ports: Ports
    account: ProviderAccount

    def end(self, outcome: str, finding: str) -> EndCall:
        return EndCall(self.call.id, self.operation.id, "provider_response", outcome, finding, self.result.seen)


def send(
    before: OperationFacts | None, operation: SubmitOperation, call: BeginCall, account: ProviderAccount
) -> Effect:
    """The send of this frozen request, as an effect. An operation that was prepared before is sent as it was frozen."""
    body = before.request_body if before else operation.request_body
    sha256 = before.request_sha256 if before else operation.request_sha256
    api_version = before.api_version if before else operation.api_version
    request = RefundRequest(
        operation_id=operation.id, payment_ref=operation.payment_ref, body=body, body_sha256=sha256,
        amount=Money(operation.amount_minor, operation.currency), api_version=api_version,
    )

    def effect(facts: RefundFacts, ports: Ports) -> Transition:
        if ports.may_send(operation.id):
            result = ports.provider(account).create_refund(
                account, request, idempotency_key=operation.idempotency_key, resend=False, deadline=ports.sending
            )
        else:
            unsent = _unsent(ports.provider(account), api_version)
            result = NotSent("the lease or the sender's lock was too short for a send", unsent)
        return outcome(Sent(operation, call, result, facts, ports, account))

    return effect


def _unsent(provider: PaymentProvider, api_version: str) -> Observation:
    return Observation(
        request_line="(nothing was sent)", http_status=None, provider_request_id=None, body_sha256=None, body=None,
        api_version=api_version, adapter_version=provider.adapter_version,
    )


def outcome(sent: Sent) -> Transition:
    """The transition that follows from the provider's answer to a first send."""
    match sent.result:
        case Succeeded():
            return _succeeded(sent, sent.result)
        case Declined():
            return _declined(sent, sent.result)
        case Pending():
            return _pending(sent, sent.result)
        case Throttled() | NotSent():
            return _not_sent(sent, sent.result)
        case Mismatch():
            return _mismatch(sent, sent.result)
        case KeyInProgress():
            return _unknown(sent, "the provider says that a request under this key is still running")
        case KeyConflict():
            why = "the provider says that this key was used for another request"
            return _unknown(sent, why, case=("KEY_CONFLICT", ()))
        case OutcomeUnknown(stage=stage, cause=cause, key_burned=burned):
            return _unknown(sent, f"{stage}: {cause}", burned=burned)


def tell(operation_id: UUID, facts: RefundFacts, payment_ref: str, amount: int, ref: str | None) -> Tell:
    """The order system is told of the refund that succeeded."""
    return tell_order_system(
        operation_id, tenant=facts.tenant.slug, order_ref=facts.task.order_ref, payment_ref=payment_ref,
        amount_minor=amount, ref=ref, status="succeeded",
    )


def _succeeded(sent: Sent, result: Succeeded) -> Transition:
    end = sent.end("succeeded", "succeeded")
    operation = sent.operation
    return Transition(
        to=Status.COMPLETED,
        events=(
            Say("operation.succeeded", {"operation": str(operation.id), "provider_ref": result.refund.ref}),
            Say("hold.consumed"), Say("task.completed"),
        ),
        if_wished=(Say("cancel.too_late"),),
        parts=(
            end, EndHold(consumed=True),
            LearnOperation(operation.id, OperationState.SUCCEEDED, None, end.id, result.refund.ref),
            tell(operation.id, sent.facts, operation.payment_ref, operation.amount_minor, result.refund.ref),
        ),
    )


def _declined(sent: Sent, result: Declined) -> Transition:
    end = sent.end("declined", result.code)
    ref = result.refund.ref if result.refund else None
    # Refused at the door, without a refund that says so: a later look makes sure that it was really nothing.
    look = None if result.refund else After(sent.ports.timing.late_watch_every)
    return Transition(
        to=Status.FAILED,
        events=(
            Say("operation.declined", {"operation": str(sent.operation.id), "code": result.code}), Say("hold.released"),
            Say("task.failed", {"code": "declined", "why": f"The provider refused it: {result.code}."}),
        ),
        parts=(
            end, EndHold(consumed=False), LearnOperation(sent.operation.id, OperationState.FAILED, look, end.id, ref),
        ),
    )


def _pending(sent: Sent, result: Pending) -> Transition:
    look = After(next_look(sent.ports.timing, 0, pending=True))
    return Transition(
        to=Status.RECONCILING,
        events=(Say("operation.pending", {"operation": str(sent.operation.id), "provider_ref": result.refund.ref,
                                          "status": result.refund.status}),),
        parts=(sent.end("pending", result.refund.status),
               LearnOperation(sent.operation.id, OperationState.PENDING, look, provider_ref=result.refund.ref)),
        due=look,
    )


def _not_sent(sent: Sent, result: Throttled | NotSent) -> Transition:
    why = result.cause if isinstance(result, NotSent) else "the provider asks to wait"
    asked = (result.retry_after or 0) if isinstance(result, Throttled) else 0
    starts = sent.facts.task.starts
    # Turned away at the door, somebody must do something. That nobody can be reached uses up nothing.
    turned_away = isinstance(result, NotSent) and result.seen.http_status is not None
    return Transition(
        to=Status.READY,
        events=(Say("operation.not_sent", {"operation": str(sent.operation.id), "why": why[:300]}),),
        parts=(
            sent.end("not_sent", why[:40]),
            LearnOperation(sent.operation.id, OperationState.PREPARED, None, note=why[:300]),
            *_overheard(sent),
        ),
        columns={"last_error": why[:300]},
        due=After(max(asked, backoff(sent.ports.timing, starts))),
        starts=None if turned_away else min(starts, sent.ports.timing.retry_budget - 1),
    )


def _overheard(sent: Sent) -> tuple[AtPace, ...]:
    """A provider that asks to wait is not asked about other outcomes meanwhile either."""
    result = sent.result
    if not isinstance(result, Throttled):
        return ()
    return (overheard(sent.account.id, sent.ports.timing, result.retry_after),)


def _mismatch(sent: Sent, result: Mismatch) -> Transition:
    if result.nameless:
        return _unknown(sent, "the provider's refund does not carry our reference", ref=result.refund.ref)
    differs = ", ".join(result.differs)
    name = next((n for n in ("payment", "currency", "amount") if n in result.differs), "payment")
    why = f"the provider's refund differs from the request in {differs}"
    # Its reference is kept: that a look at our payment does not show it proves nothing from now on. One that names
    # another operation is that one's.
    own = result.refund.operation_ref in (None, str(sent.operation.id))
    return _unknown(
        sent, why, case=(MISMATCH_CLASS[name], (result.refund,)), ref=result.refund.ref if own else None
    )


def _unknown(
    sent: Sent, why: str, *, case: tuple[str, tuple[ProviderRefund, ...]] | None = None, burned: bool = False,
    ref: str | None = None,
) -> Transition:
    """Not known: the next look comes soon, and nothing new is sent before the truth is proved."""
    look = None if case else After(next_look(sent.ports.timing, 0))
    opened = (Say("case.opened", {"class": case[0], "why": why[:300]}),) if case else ()
    return Transition(
        to=Status.RECONCILING,
        events=(Say("operation.unknown", {"operation": str(sent.operation.id), "why": why[:300]}), *opened),
        parts=(
            sent.end("unknown", why[:40]),
            LearnOperation(
                sent.operation.id, OperationState.UNKNOWN, look, provider_ref=ref, resend_disabled=burned,
                note=why[:300],
            ),
            *((_case(sent, *case),) if case else ()),
        ),
        columns={"attention": case[0]} if case else {},
        due=look,
    )


def _case(sent: Sent, name: str, refunds: tuple[ProviderRefund, ...]) -> OpenCase:
    operation = sent.operation
    return OpenCase(
        name, operation.account, operation.payment_ref, operation.order_ref, operation.id, operation.amount_minor,
        operation.currency, why=CLASSES[name].says,
        details={"when": "the answer to the request", "refunds": listed(refunds)},
    )


def on_executing(facts: RefundFacts, ports: Ports) -> Transition:
    """Claimed while executing: whoever committed the intent did not record an outcome. It may have been sent."""
    # Derived: the facts may have been read before this very worker handed the operation over.
    id, resends = facts.operation_id, facts.operation.resends if facts.operation else 0
    why = "the worker stopped after the request was handed over"
    return Transition(
        to=Status.RECONCILING,
        events=(Say("operation.unknown", {"operation": str(id), "why": why}),),
        parts=(LearnOperation(id, OperationState.UNKNOWN, NOW, resends=resends, note=why),),
        due=NOW,
    )
