"""Wrong variants of the protocol: each is what a careless change would make of it, and a matrix must notice it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from runtime_app import outbox, transitions
from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.chronicle import Say
from runtime_app.drain import Drain
from runtime_app.ledger.balances import EndHold
from runtime_app.ledger.operations import LearnOperation
from runtime_app.senders import SenderLocks
from runtime_app.states import OperationState, Status
from runtime_app.transitions import NOW, Transition
from runtime_app.workflows import WORKFLOWS
from runtime_app.workflows.refund import reconcile, submit
from runtime_app.workflows.types import Handler
from tests.reliability.mutants_of_money import MONEY


def no_sender_lock() -> None:
    """Leases and fences are trusted to protect the provider too."""
    SenderLocks.take = lambda self, operation_id: True  # type: ignore[method-assign]
    SenderLocks.still_held = lambda self, operation_id: True  # type: ignore[method-assign]


def no_guard() -> None:
    """Whoever comes last writes, as a rescuer does that looks at the id only."""
    transitions._holds = lambda guard, row: True


def send_again_blindly() -> None:
    """A task that died while executing is simply executed again."""

    def on_executing(facts: Any, ports: Any) -> Transition:
        prepared = LearnOperation(facts.operation.id, OperationState.PREPARED, None)
        return Transition(to=Status.READY, parts=(prepared,), due=NOW)

    WORKFLOWS["refund", 1].handlers[Status.EXECUTING] = Handler(on_executing)  # type: ignore[index]


def a_key_each_send() -> None:
    """The idempotency key is made where the request is sent."""
    send = StripePayments.create_refund

    def create_refund(self: Any, account: Any, request: Any, *, idempotency_key: str, **more: Any) -> Any:
        return send(self, account, request, idempotency_key=str(uuid4()), **more)

    StripePayments.create_refund = create_refund  # type: ignore[method-assign]


def send_before_the_intent() -> None:
    """The request is sent, and only then is it written down that it was."""
    with_lock = Drain._with_lock

    def sending(self: Drain, each: Any) -> Any:
        ready = with_lock(self, each)
        if ready.transition.to != Status.EXECUTING or ready.transition.then is None:
            return ready
        from runtime_app.adapters.payments.types import Deadline

        ports = replace(self.ports, deadline=Deadline(ready.hand.lease_until), sender_holds=self.locks.still_held)
        outcome = ready.transition.then(ready.hand.facts, ports)
        return replace(ready, transition=replace(ready.transition, then=lambda facts, ports: outcome))

    Drain._with_lock = sending  # type: ignore[method-assign]


def unknown_means_failed() -> None:
    """No answer counts as a refusal."""

    def unknown(sent: Any, why: str, **more: Any) -> Transition:
        end = sent.end("unknown", "unknown")
        failed = LearnOperation(sent.operation.id, OperationState.FAILED, None, end.id)
        parts = (end, EndHold(consumed=False), failed)
        return Transition(to=Status.FAILED, events=(Say("task.failed", {"why": why}),), parts=parts)

    submit._unknown = unknown


def absent_means_never() -> None:
    """One look that finds nothing proves that nothing will come."""
    situation = reconcile._situation

    def hasty(*args: Any) -> Any:
        return replace(situation(*args), absent_counts=True, horizon_passed=True, no_sender=True)

    reconcile._situation = hasty  # type: ignore[assignment]


def told_before_telling() -> None:
    """A message counts as delivered when it is taken, not when it has arrived."""
    claim = outbox.claim

    def claim_and_forget(**how: Any) -> Any:
        taken = claim(**how)
        outbox.done([intent.id for intent in taken])
        return taken

    outbox.claim = claim_and_forget


MUTANTS: dict[str, Callable[[], None]] = {
    mutant.__name__: mutant
    for mutant in (
        no_sender_lock, no_guard, send_again_blindly, a_key_each_send, send_before_the_intent, unknown_means_failed,
        absent_means_never, told_before_telling,
    )
} | MONEY
