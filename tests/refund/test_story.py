"""One refund from request to truth, and what may come between."""

from __future__ import annotations

from typing import Any

from runtime_app.models import Balance, Call, Hold, Operation, Task
from tests.world import World


def _posts(world: World, task: Task) -> list[dict[str, Any]]:
    """The sends of the task's operation that the provider saw."""
    return world.sandbox.requests(operation_id=str(world.operation(task).id), method="POST")


def test_a_small_refund_needs_nobody_and_is_done_once(world: World) -> None:
    """M16, M19: the policy asks nobody under the threshold."""
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    assert task.status == "completed"
    assert [r["amount_minor"] for r in world.effects(order)] == [1000]
    assert world.events(task)[0] == "task.opened" and world.events(task)[-1] == "task.completed"
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.reserved_minor, balance.refunded_minor) == (0, 1000)


def test_a_large_refund_waits_for_a_person_and_then_is_done(world: World) -> None:
    """M20, M38: approved by Ada, executed once, and the operation names whose authority it used (M21)."""
    order = world.order()
    task = world.ask(order, 6000)
    asked = world.approval(task)
    assert world.effects(order) == []
    world.decide(world.ada, asked)
    world.finish(task)
    assert task.status == "completed"
    operation = world.operation(task)
    assert operation.authority["approvers"] == ["ada"] and operation.state == "succeeded"
    assert [r["operation_id"] for r in world.effects(order)] == [str(operation.id)]


def test_a_lost_answer_is_looked_up_and_never_sent_again(world: World) -> None:
    """C04, M23: the provider booked it, the answer was lost; same operation and key throughout, only queries."""
    order = world.order()
    task = world.ask(order, 2500)
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    world.until(lambda: "operation.unknown" in world.events(task))
    world.finish(task)
    for _ in range(3):
        world.work()
    assert task.status == "completed"
    assert len(world.effects(order)) == 1
    operation = world.operation(task)
    assert {r["idempotency_key"] for r in world.effects(order)} == {operation.idempotency_key}
    kinds = list(Call.objects.filter(operation=operation).order_by("started_at").values_list("kind", flat=True))
    assert kinds[0] == "submit" and set(kinds[1:]) == {"query"}
    assert len(_posts(world, task)) == 1


def test_a_request_lost_before_the_provider_is_sent_again_under_its_own_key(world: World) -> None:
    """M23, rows 10 to 12: proved absent often enough, inside the key's window: the same frozen request, once."""
    order = world.order()
    task = world.ask(order, 2500)
    world.sandbox.fault("F2", times=1, match={"payment_ref": f"pi_{order}"})
    world.finish(task, seconds=40)
    assert task.status == "completed" and len(world.effects(order)) == 1
    assert "operation.resubmitted_same_key" in world.events(task)
    assert len({r["idempotency_key"] for r in _posts(world, task)}) == 1


def test_a_declined_refund_frees_the_balance(world: World) -> None:
    """M03, row 6: a definite no releases the hold, and the amount can be asked for again as a new task."""
    order = world.order(5000)
    world.sandbox.fault("F21", times=1, match={"payment_ref": f"pi_{order}"}, seconds=0, then="failed")
    first = world.ask(order, 5000)
    world.finish(first)
    assert first.status == "failed"
    assert Hold.objects.get(task=first).state == "released"
    second = world.ask(order, 5000)
    world.finish(second)
    assert second.status == "completed" and [r["amount_minor"] for r in world.effects(order)] == [5000]


def test_two_equal_partial_refunds_are_two_operations(world: World) -> None:
    """C13, M02: deduplication follows the request key, never order and amount; a retry of one stays that one."""
    order = world.order(6000)
    first = world.ask(order, 1500, reason="item 1")
    world.finish(first)
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    second = world.ask(order, 1500, reason="item 2")
    world.finish(second)
    assert (first.status, second.status) == ("completed", "completed")
    operations = Operation.objects.filter(task__in=[first, second])
    assert len({o.idempotency_key for o in operations}) == 2
    assert sum(r["amount_minor"] for r in world.effects(order)) == 3000


def test_a_missing_amount_waits_for_input_and_goes_on_when_given(world: World) -> None:
    """M08: not given is asked for; it is neither a default nor an empty string."""
    from runtime_app import tasks

    order = world.order()
    task = world.ask(order, None, currency=None)
    world.until(lambda: world.events(task)[-1] == "task.waiting_input")
    task.refresh_from_db()
    assert set(task.state["waiting_for"]) == {"amount_minor", "currency"}
    tasks.supply_input(world.rita, task.id, revision=task.revision, fields={"amount_minor": 700, "currency": "USD"})
    world.finish(task)
    assert task.status == "completed" and [r["amount_minor"] for r in world.effects(order)] == [700]


def test_an_order_with_two_payments_asks_which_one(world: World) -> None:
    """One request refunds one payment; a request that spans two is refused with how to split it."""
    from runtime_app import tasks

    order = world.order()
    world.sandbox.order(f"{order}-2", payments={f"a_{order}": 3000, f"b_{order}": 4000})
    task = world.ask(f"{order}-2", 1000)
    world.until(lambda: world.events(task)[-1] == "task.waiting_input")
    task.refresh_from_db()
    tasks.supply_input(world.sam, task.id, revision=task.revision, fields={"payment_ref": f"a_{order}"})
    world.finish(task)
    assert task.status == "completed"
    spanning = world.ask(f"{order}-2", 5000, payment_ref=f"b_{order}")
    world.finish(spanning)
    assert spanning.status == "failed" and "in parts" in world.said(spanning, "task.failed")["why"]


def test_more_than_remains_is_refused_and_in_flight_counts(world: World) -> None:
    """M03, C03a: a pending refund holds its amount."""
    order = world.order(10000)
    world.sandbox.fault("F21", times=1, match={"payment_ref": f"pi_{order}"}, seconds=3600, then="succeeded")
    first = world.ask(order, 4000)
    world.until(lambda: "operation.pending" in world.events(first))
    second = world.ask(order, 4500)
    third = world.ask(order, 4500)
    world.until(lambda: "task.failed" in world.events(second) + world.events(third))
    assert Balance.objects.get(payment_ref=f"pi_{order}").reserved_minor == 8500
    world.sandbox.advance(7200)
    world.finish(first, second, third)
    assert sorted([first.status, second.status, third.status]) == ["completed", "completed", "failed"]
    assert sum(r["amount_minor"] for r in world.effects(order)) == 8500


def test_text_of_any_kind_is_stored_as_it_came(world: World) -> None:
    """What people write goes through array literals: quotes, backslashes, braces and NULL are only text."""
    reason = 'say "NULL", {a,b} \\ \\" and \'x\'; NULL'
    task = world.ask(world.order(), 700, reason=reason)
    world.finish(task)
    assert task.status == "completed" and task.reason == reason
    assert task.state["material"]["reason"] == reason
