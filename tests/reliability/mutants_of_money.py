"""Wrong variants of what the core does about money that moves otherwise than was agreed on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

from runtime_app import looks, watch
from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import (
    Absent,
    Found,
    Inconclusive,
    Mismatch,
    ProviderRefund,
    RefundStatus,
    Succeeded,
)
from runtime_app.desk import actions, rules
from runtime_app.drain import Drain
from runtime_app.ledger.balances import ReturnRefund
from runtime_app.ledger.cases import Unblocked
from runtime_app.models import Notice
from runtime_app.money import Money
from runtime_app.reconciliation import reading
from runtime_app.reconciliation.reading import Reading
from runtime_app.reconciliation.table import Finding
from runtime_app.states import Status
from runtime_app.transitions import Transition
from runtime_app.workflows.refund import attach, endings, judge, reconcile
from runtime_app.workflows.types import Ports


def put(module: ModuleType, name: str, instead: object) -> None:
    """Let the module use this instead of what it has under this name, which must be there."""
    assert hasattr(module, name)
    setattr(module, name, instead)


def compare_skipped() -> None:
    """The provider's own figures are not asked for before submitting."""
    put(judge, "compare", lambda facts, ports, judged: None)


def outside_not_counted() -> None:
    """A refund made elsewhere is told to a person, and leaves what may still be refunded as it was."""
    put(looks, "keep_provider_external", lambda balance_id, external_minor: False)


def case_does_not_stop() -> None:
    """A person's open case is only shown."""
    Unblocked.admit = classmethod(lambda cls, wanted: {})  # type: ignore[method-assign,assignment]


def outside_matched_by_amount() -> None:
    """A refund of the same amount as one of ours is taken for it."""

    def owner(self: looks.Ours, refund: ProviderRefund) -> str | None:
        return next(iter(self.states), None)

    looks.Ours.owner = owner  # type: ignore[method-assign]


def alike_is_ours() -> None:
    """A refund of our amount near our time is taken for ours."""
    read = reading.read

    def reads(answer: Any, asked: Any) -> Reading:
        seen = read(answer, asked)
        found = seen.finding == Finding.LOOKALIKES
        return Reading(Finding.SUCCEEDED, seen.alike[0], seen.alike) if found else seen

    put(reconcile, "read", reads)


def late_truth_ignored() -> None:
    """An outcome that was proved once is never changed."""
    watch._transition = lambda watched, verdict, seen, end: Transition(parts=(end,), starts=None)


def returned_not_given_back() -> None:
    """The money that came back is told of, and the balance is not."""
    ReturnRefund.write = classmethod(lambda cls, wanted: None)  # type: ignore[method-assign,assignment]


def duplicate_without_case() -> None:
    """One of two is taken for ours, and the other for nothing."""
    endings._excess = lambda facts, seen: ()


def total_not_compared() -> None:
    """A complete list counts, whatever the payment says was refunded of it."""
    find = StripePayments.find_refunds

    def finds(self: Any, account: Any, **how: Any) -> Any:
        answer = find(self, account, **how)
        return Absent(replace(answer.seen, complete=True)) if isinstance(answer, Inconclusive) else answer

    StripePayments.find_refunds = finds  # type: ignore[method-assign]


def notice_is_believed() -> None:
    """What a signed notice says is taken for an answer of the provider's."""
    ask = reconcile._answer

    def answers(facts: Any, ports: Any) -> Any:
        operation, answer = facts.operation, ask(facts, ports)
        told = Notice.objects.filter(operation_ref=str(operation.id), says="succeeded").first()
        if told is None:
            return answer
        refund = ProviderRefund(
            told.refund_ref, str(operation.id), operation.payment_ref,
            Money(operation.amount_minor, operation.currency), RefundStatus.SUCCEEDED,
        )
        return Found((refund,), answer.seen)

    reconcile._answer = answers


def difference_overlooked() -> None:
    """A refund that carries our name is what was asked for."""
    send = StripePayments.create_refund

    def create_refund(self: Any, account: Any, request: Any, **how: Any) -> Any:
        result = send(self, account, request, **how)
        return Succeeded(result.refund, result.seen) if isinstance(result, Mismatch) else result

    StripePayments.create_refund = create_refund  # type: ignore[method-assign]


def named_without_a_look() -> None:
    """What a person names is believed."""

    def judged(answer: Any, asked: Any, operation_id: Any) -> tuple[Reading, str]:
        refund = ProviderRefund(
            "re_made_up", str(operation_id), asked.payment_ref, asked.amount, RefundStatus.SUCCEEDED
        )
        return Reading(Finding.SUCCEEDED, refund, (refund,)), ""

    attach.judge = judged


def one_person_is_enough() -> None:
    """Whoever has declared it may declare it again."""
    rules_of = {name: tuple(r for r in a.rules if r is not rules.not_the_first) for name, a in actions.BY_NAME.items()}
    actions.BY_NAME = {name: replace(a, rules=rules_of[name]) for name, a in actions.BY_NAME.items()}


def sent_again_without_the_lock() -> None:
    """Whoever finds nothing sends again, and does not ask whether another one still may."""
    take, situation = Drain._take, reconcile._situation

    def takes(self: Drain, hand: Any, operation_id: Any) -> bool:
        return hand.task.status == Status.RECONCILING or take(self, hand, operation_id)

    def finds_nobody(*args: Any) -> Any:
        return replace(situation(*args), no_sender=True)

    Drain._take = takes  # type: ignore[method-assign]
    Ports.may_send = lambda self, operation_id: True  # type: ignore[method-assign]
    put(reconcile, "_situation", finds_nobody)


MONEY: dict[str, Callable[[], None]] = {
    mutant.__name__: mutant
    for mutant in (
        compare_skipped, outside_not_counted, case_does_not_stop, outside_matched_by_amount, alike_is_ours,
        late_truth_ignored, returned_not_given_back, duplicate_without_case, total_not_compared, notice_is_believed,
        difference_overlooked, named_without_a_look, one_person_is_enough, sent_again_without_the_lock,
    )
}
