"""Cancelling: before submission it ends the task; after it, the wish is kept and the truth is found (M15)."""

from __future__ import annotations

import pytest

from runtime_app import tasks, watch
from runtime_app.errors import Conflict
from runtime_app.models import Balance, Hold
from tests.world import World


def test_cancel_before_submission_ends_it_and_frees_the_hold(world: World) -> None:
    order = world.order()
    task = world.ask(order, 6000)
    asked = world.approval(task)
    tasks.cancel(world.rita, task.id, reason="asked twice")
    task.refresh_from_db()
    asked.refresh_from_db()
    assert (task.status, asked.state) == ("cancelled", "cancelled")
    with pytest.raises(Conflict):
        tasks.cancel(world.rita, task.id, reason="again")
    assert not Hold.objects.exists() and world.effects(order) == []


def test_cancel_after_it_was_done_is_too_late_and_says_so(world: World) -> None:
    """Row 2: the wish does not change what happened."""
    world.retime(reconcile_after=[60])
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    world.until(lambda: "operation.unknown" in world.events(task))
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    world.finish(task)
    assert task.status == "completed" and len(world.effects(order)) == 1
    assert "cancel.too_late" in world.events(task)


def test_a_wished_cancel_of_a_request_that_never_arrived_is_proved_first(world: World) -> None:
    """Rows 16 and 17: no resend, and cancelled only behind the horizon with complete looks."""
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F2", times=1, match={"payment_ref": f"pi_{order}"})
    world.until(lambda: "operation.unknown" in world.events(task))
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    world.finish(task, seconds=30)
    assert task.status == "cancelled" and world.effects(order) == []
    assert "operation.resubmitted_same_key" not in world.events(task)
    assert world.operation(task).state == "not_executed" and Hold.objects.get(task=task).state == "released"


def test_a_request_that_lands_after_the_cancel_is_detected_and_shown(world: World) -> None:
    """F20, row 23, R19: the task keeps its end and carries the mark, the operation follows the money."""
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F20", times=1, match={"payment_ref": f"pi_{order}"}, seconds=86400)
    world.until(lambda: "operation.unknown" in world.events(task))
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    world.finish(task, seconds=30)
    assert task.status == "cancelled"
    world.sandbox.advance(2 * 86400)

    def landed() -> bool:
        watch.watch(world.ports(), actor="worker:in-test")
        task.refresh_from_db()
        return task.attention is not None

    world.until(landed)
    assert (task.status, task.attention) == ("cancelled", "LATE_EXECUTION") and len(world.effects(order)) == 1
    assert world.operation(task).state == "succeeded"
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 1000
