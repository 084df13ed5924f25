"""The sender's lock belongs to a hand, not to a process: session locks are re-entrant, and leases run out."""

from __future__ import annotations

from runtime_app import tasks
from tests.world import World


def test_a_hand_does_not_believe_an_absence_with_the_lock_of_another_hand_of_its_process(world: World) -> None:
    """Rule 1: whoever reconciles skips keys that its own process holds, since that process may still send."""
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F2", times=1, match={"payment_ref": f"pi_{order}"})
    world.until(lambda: "operation.unknown" in world.events(task))
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    operation = world.operation(task)
    assert world.drain.locks.take(operation.id)  # as a first hand does whose send is still running
    world.clock(hours=2)

    def looked_often() -> bool:
        return world.events(task).count("operation.checked") > world.timing.absent_count + 2

    world.until(looked_often)
    task.refresh_from_db()
    assert task.status == "reconciling"
    world.drain.locks.give_back(operation.id)
    world.finish(task)
    assert task.status == "cancelled" and world.effects(order) == []
