"""The founding example: two refunds of one order at the same time are normal, and share one remaining amount."""

from __future__ import annotations

from runtime_app import clock
from runtime_app.models import Balance, Event, Task
from tests.world import World


def finish(world: World, *tasks: Task) -> None:
    """Work, with the clock beside it, until these have ended."""

    def ended() -> bool:
        clock.tick()
        for task in tasks:
            task.refresh_from_db()
        return all(task.status == "completed" for task in tasks)

    world.until(ended)


def test_the_second_is_approved_and_executed_after_the_first_is_completed(world: World) -> None:
    """M04: our own refund changes the order, and not what the other approval is bound to."""
    order = world.order(18000)
    first, second = world.ask(order, 9000, reason="broken"), world.ask(order, 8500, reason="late")
    of_first, of_second = world.approval(first), world.approval(second)
    world.decide(world.ada, of_first)
    finish(world, first)
    of_second.refresh_from_db()
    second.refresh_from_db()
    assert (of_second.state, second.status) == ("open", "waiting_approval")
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.refunded_minor, balance.reserved_minor, balance.remaining_minor) == (9000, 0, 9000)
    world.decide(world.abel, of_second)
    finish(world, second)
    assert "approval.superseded" not in world.events(second)
    balance.refresh_from_db()
    assert (balance.refunded_minor, balance.reserved_minor, balance.remaining_minor) == (17500, 0, 500)
    assert sorted(refund["amount_minor"] for refund in world.effects(order)) == [8500, 9000]


def test_two_of_one_payment_in_one_batch_wait_for_each_other_and_are_both_done(world: World) -> None:
    """Architecture rule 7: the loser parks as a sibling in flight and is woken; only it drops out of the batch."""
    order, other = world.order(10000), world.order(10000)
    world.sandbox.fault("F4", match={"payment_ref": f"pi_{order}"})  # the first answer is lost, so the wait is real
    tasks = [world.ask(order, 4000), world.ask(order, 3000), world.ask(other, 2000)]
    finish(world, *tasks)
    parked = [e.task_id for e in Event.objects.filter(type="task.parked")]
    assert parked and set(parked) < {tasks[0].id, tasks[1].id}
    assert sorted(refund["amount_minor"] for refund in world.effects(order)) == [3000, 4000]
    assert [refund["amount_minor"] for refund in world.effects(other)] == [2000]
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.refunded_minor, balance.reserved_minor) == (7000, 0)
