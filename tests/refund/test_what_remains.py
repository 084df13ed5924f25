"""What still remains of a payment, when several refunds, a provider and an order system each have their say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runtime_app import looks, tasks
from runtime_app.ledger.operations import wake_unblocked
from runtime_app.models import Balance, Case, Task
from runtime_app.money import Money
from tests.attack.bent import bend
from tests.world import World


def _balance(order: str) -> Balance:
    return Balance.objects.get(payment_ref=f"pi_{order}")


def test_what_is_in_flight_counts_against_what_remains(world: World) -> None:
    """C03 a, M03: 7000 accepted and not settled leaves 3000 of 10000."""
    order = world.order(10000)
    world.sandbox.fault("F21", match={"payment_ref": f"pi_{order}"}, seconds=None)
    first = world.ask(order, 4000)
    world.until(lambda: Task.objects.get(id=first.id).status == "reconciling")
    second = world.ask(order, 7000)
    world.finish(second)
    assert second.status == "failed"
    assert "Only 60.00 USD remains" in world.said(second, "task.failed")["why"]
    world.sandbox.set_refund(world.effects(order)[0]["id"], "succeeded")
    world.finish(first)


def test_a_definite_decline_frees_what_it_held(world: World) -> None:
    """C03 b: the same amount may be asked for again, as a task of its own."""
    order = world.order(5000)
    world.sandbox.fault("F21", match={"payment_ref": f"pi_{order}"}, seconds=0, then="failed")
    declined = world.ask(order, 5000)
    world.finish(declined)
    assert declined.status == "failed" and _balance(order).remaining_minor == 5000
    again = world.ask(order, 5000)
    world.finish(again)
    assert again.status == "completed"
    assert [r["operation_id"] for r in world.effects(order)] == [str(world.operation(again).id)]


def test_a_refund_that_spans_two_payments_is_refused_whole(world: World) -> None:
    """C03 c: the sentence says how to split it, and nothing of it is done."""
    order = "ORD-1003"
    world.sandbox.order(order, payments={"pi_P1": 3000, "pi_P2": 7000})
    task = world.ask(order, 4000, payment_ref="pi_P1")
    world.finish(task)
    assert task.status == "failed"
    said = world.said(task, "task.failed")
    assert said["code"] == "spans_payments" and "30.00 USD of pi_P1 and 70.00 USD of pi_P2" in said["why"]
    assert world.sandbox.refunds("pi_P1") == world.sandbox.refunds("pi_P2") == []


def test_two_equal_partial_refunds_are_two_operations(world: World) -> None:
    """C13: the retry of the second stays the second."""
    order = world.order(6000)
    first = world.ask(order, 1500)
    world.finish(first)
    world.sandbox.fault("F4", match={"payment_ref": f"pi_{order}"})
    second = world.ask(order, 1500)
    world.finish(second)
    assert first.status == second.status == "completed"
    assert sorted(r["operation_id"] for r in world.effects(order)) == sorted(
        str(world.operation(task).id) for task in (first, second)
    )
    assert _balance(order).refunded_minor == 3000


def test_a_refund_made_outside_is_found_before_anything_is_submitted(world: World) -> None:
    """M03, M09: the order system has not heard of it; the provider's own total stops the submission."""
    order = world.order(10000)
    first = world.ask(order, 1000)
    world.finish(first)
    world.sandbox.fault("F33", match={"payment_ref": f"pi_{order}"}, amount_minor=4000)
    bend(world, orders={"read_order": _without_outside_refunds})
    task = world.ask(order, 5000)
    _until_parked(world, task)
    case = Case.objects.get(class_name="EXTERNAL_REFUND", payment_ref=f"pi_{order}")
    assert (case.amount_minor, case.blocks, case.order_ref) == (4000, "payment", order)
    assert case.evidence.count() == 1
    assert _balance(order).external_provider_minor == 4000 and _balance(order).remaining_minor == 0
    assert len(world.effects(order)) == 2  # ours of before, and the outside one


def test_after_a_person_has_acknowledged_it_what_still_fits_goes_on(world: World) -> None:
    order = world.order(10000)
    world.sandbox.fault("F33", match={"payment_ref": f"pi_{order}"}, amount_minor=4000)
    bend(world, orders={"read_order": _without_outside_refunds})
    task = world.ask(order, 5000)
    _until_parked(world, task)
    Case.objects.filter(payment_ref=f"pi_{order}").update(
        state="closed", outcome="acknowledged", closed_at="2026-01-01T00:00:00Z"
    )
    assert wake_unblocked() == 1
    world.finish(task)
    assert task.status == "completed"
    assert _balance(order).remaining_minor == 1000


def test_too_much_after_an_outside_refund_is_judged_anew_and_refused(world: World) -> None:
    """M20: what was refunded outside of us is a material fact."""
    order = world.order(10000)
    world.sandbox.fault("F33", match={"payment_ref": f"pi_{order}"}, amount_minor=6000)
    bend(world, orders={"read_order": _without_outside_refunds})
    task = world.ask(order, 5000)
    world.until(lambda: _looked(world) and Task.objects.get(id=task.id).status == "failed")
    assert "Only 40.00 USD remains" in world.said(task, "task.failed")["why"]
    assert len(world.effects(order)) == 1


def test_another_captured_amount_than_the_orders_stops_the_submission(world: World) -> None:
    """money.md 4: disagreement stops before submit, and a person is told the two figures."""

    def less(real: Any, *args: Any, **kwargs: Any) -> Any:
        told = real(*args, **kwargs)
        return replace(told, captured=Money(told.captured.minor - 1, told.captured.currency))

    order = world.order(10000)
    bend(world, payments={"retrieve_payment": less})
    task = world.ask(order, 5000)
    _until_parked(world, task)
    case = Case.objects.get(task=task)
    assert case.class_name == "BALANCE_DISAGREES" and "100.00 USD" in case.why and "99.99 USD" in case.why
    assert Task.objects.get(id=task.id).attention == "BALANCE_DISAGREES" and world.effects(order) == []


def test_a_payment_of_the_other_mode_is_never_touched(world: World) -> None:
    """F49, M09: a live payment behind a test account."""
    order = world.order(10000)
    world.sandbox.fault("F49", match={"payment_ref": f"pi_{order}"}, what="livemode", times=None)
    task = world.ask(order, 5000)
    _until_parked(world, task)
    assert Case.objects.get(task=task).class_name == "ACCOUNT_OR_MODE" and world.effects(order) == []


def test_a_disputed_payment_is_not_refunded(world: World) -> None:
    """F34: the customer's bank is at it already."""
    order = world.order(10000)
    world.sandbox.fault("F34", match={"payment_ref": f"pi_{order}"})
    task = world.ask(order, 5000)
    world.finish(task)
    assert task.status == "failed" and world.said(task, "task.failed")["code"] == "disputed"
    assert world.effects(order) == []


def test_a_provider_that_cannot_be_asked_delays_and_burns_nothing(world: World) -> None:
    """M25: an outage of somebody else uses up no budget, and nothing is submitted blindly."""
    world.retime(retry_budget=2)
    order = world.order(10000)
    world.sandbox.fault("F27", on="payment", times=6, match={"payment_ref": f"pi_{order}"})
    task = world.ask(order, 5000)
    world.finish(task)
    assert task.status == "completed" and len(world.effects(order)) == 1


def test_a_tenant_without_an_account_waits_for_one(world: World) -> None:
    """M09: money never moves through another account than the tenant's own."""
    birch_order = world.order(5000, tenant=world.birch)
    world.birch.accounts.all().delete()
    task = tasks.create(
        world.bea, world.birch, tasks.Request("refund", birch_order, amount_minor=1000, currency="USD"),
        request_key="no-account",
    ).task
    world.until(lambda: "no account" in Task.objects.get(id=task.id).last_error)
    assert Task.objects.get(id=task.id).status == "queued"


def _without_outside_refunds(real: Any, *args: Any, **kwargs: Any) -> Any:
    """An order system that knows only of the refunds that it was told of."""
    told = real(*args, **kwargs)
    payments = tuple(
        replace(p, refunds=tuple(r for r in p.refunds if r.operation_id is not None)) for p in told.payments
    )
    return replace(told, payments=payments)


def _looked(world: World) -> bool:
    looks.work(world.ports(), actor="worker:in-test")
    return True


def _until_parked(world: World, task: Task) -> None:
    world.until(lambda: _looked(world) and Task.objects.get(id=task.id).parked_reason == "case_open")


