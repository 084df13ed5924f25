"""C10: a refund that somebody made in the provider's dashboard, told by a notice while a task waits for approval."""

from __future__ import annotations

from uuid import uuid4

import pytest

from runtime_app import looks, tasks
from runtime_app.errors import RuntimeAppError
from runtime_app.ids import operation_id
from runtime_app.models import Balance, Case, PaymentLook, Task
from runtime_app.tasks import Request
from tests.notices.teller import Teller, event, handled, heed, status, until
from tests.world import World


def _order_with_two_payments(world: World) -> str:
    order = f"ORD-{uuid4().hex[:10]}"
    world.sandbox.order(order, tenant="amber", currency="USD",
                        payments={f"pi_{order}_1": 5000, f"pi_{order}_2": 5000})
    return order


def _ask(world: World, order: str, payment: str, amount: int) -> Task:
    request = Request("refund", order, payment_ref=payment, amount_minor=amount, currency="USD")
    return tasks.create(world.rita, world.amber, request, request_key=f"k-{uuid4().hex}").task


def _outside(world: World, payment: str, amount: int) -> str:
    """Refunded in the dashboard; the provider's reference."""
    world.sandbox.fault("F33", match={"payment_ref": payment}, amount_minor=amount)
    return str(world.sandbox.refunds(payment)[-1]["id"])


def test_a_dashboard_refund_is_booked_on_its_payment_and_the_waiting_approval_turns_stale(
    world: World, stripe: Teller
) -> None:
    """C10, C03: ORD-1005 with P1 and P2 of 5000 each; P2 is refunded outside while 4000 of it wait for approval."""
    world.amber.approval_threshold_minor = 1000
    world.amber.save(update_fields=["approval_threshold_minor"])
    order = _order_with_two_payments(world)
    first, second = f"pi_{order}_1", f"pi_{order}_2"
    untouched = _ask(world, order, first, 4000)
    task = _ask(world, order, second, 4000)
    world.approval(untouched)
    asked = world.approval(task)
    refund = _outside(world, second, 5000)
    notice = stripe.tell(event(refund, payment=second, kind="charge.refund.updated"))
    until(world, lambda: Case.objects.filter(class_name="EXTERNAL_REFUND").exists())
    case = Case.objects.get()
    assert (case.payment_ref, case.order_ref, case.amount_minor, case.task_id) == (second, order, 5000, None)
    with pytest.raises(RuntimeAppError):
        world.decide(world.ada, asked)
    until(world, lambda: status(task) in {"failed", "queued", "waiting_input"})
    assert "approval.superseded" in world.events(task)
    assert {b.payment_ref: b.external_minor for b in Balance.objects.filter(order_ref=order)}[second] == 5000
    assert len(world.sandbox.refunds(second)) == 1, "nothing was executed beside it"
    one = Balance.objects.get(payment_ref=first)
    assert (one.external_minor, one.reserved_minor, one.refunded_minor) == (0, 0, 0)
    assert status(untouched) == "waiting_approval" and world.sandbox.refunds(first) == []
    assert handled(world, notice)[0].startswith("received: it is of no operation of ours")


def test_it_is_told_once_however_often_the_provider_tells_it(world: World, stripe: Teller) -> None:
    """One case a refund, ever, and the balance is the same however often it is compared."""
    order = world.order()
    task = world.ask(order, 6000)
    world.approval(task)
    refund = _outside(world, f"pi_{order}", 700)
    told = [stripe.tell(event(refund, payment=f"pi_{order}", kind=kind)) for kind in
            ("refund.created", "refund.updated", "charge.refund.updated")]
    assert {outcome[:9] for outcome in handled(world, *told)} == {"received:"}
    assert Case.objects.count() == 1
    assert Balance.objects.get(payment_ref=f"pi_{order}").external_minor == 700


def test_a_refund_of_nobody_at_the_provider_changes_nothing(world: World, stripe: Teller) -> None:
    """F41: rightly signed, about a refund that the provider does not show."""
    order = world.order()
    task = world.ask(order, 6000)
    world.approval(task)
    notice = stripe.tell(event("re_of_nobody", operation=uuid4(), payment=f"pi_{order}"))
    assert handled(world, notice)[0].startswith("received: it is of no operation of ours")
    assert not Case.objects.exists() and status(task) == "waiting_approval"
    assert Balance.objects.get(payment_ref=f"pi_{order}").external_minor == 0


def test_a_payment_that_neither_we_nor_the_provider_know_is_left_alone_in_the_end(
    world: World, stripe: Teller
) -> None:
    """F41: asked for a few times, and then no more; nobody is called for it."""
    notice = stripe.tell(event("re_of_nobody", payment="pi_of_nobody"))
    assert handled(world, notice)[0].startswith("received: it is of no operation of ours")
    until(world, lambda: not looks.is_anything_due() and PaymentLook.objects.get().due_at is None)
    assert not Case.objects.exists() and PaymentLook.objects.get().looked_at is not None


def test_a_notice_that_comes_before_our_commit_finds_its_operation_a_little_later(
    world: World, stripe: Teller
) -> None:
    """F39 and a restore: it names an operation that is not there yet, and is tried again until it is."""
    world.retime(retry_first=0.3, retry_most=0.3, reconcile_after=[86400.0], reconcile_every=86400.0)
    order = world.order()
    task = world.ask(order, 6000)
    asked = world.approval(task)
    known = operation_id(
        tenant="amber", workflow="refund", request_key=task.request_key, effect="refund", ordinal=task.ordinal
    )
    notice = stripe.tell(event(operation=known))
    heed(world)
    notice.refresh_from_db()
    assert notice.outcome == "received: nothing here is known by its references yet"
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    world.decide(world.ada, asked)
    until(world, lambda: status(task) == "completed")
    assert handled(world, notice) == ["received: the provider is asked what happened"]
