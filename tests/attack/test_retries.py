"""What is tried again is tried ever more slowly and not for ever, and what is nobody's fault ends nobody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from runtime_app import tasks
from runtime_app.adapters.payments.types import NotSent, Observation
from runtime_app.models import Task
from runtime_app.reconciliation.schedule import backoff
from runtime_app.senders import SenderLocks
from runtime_app.timing import Timing
from tests.attack.bent import bend, operation_of
from tests.world import World


def test_a_key_that_the_provider_turns_away_uses_up_the_budget_and_is_parked(world: World) -> None:
    """M25: 401 at every send. Somebody must renew the key; trying every few seconds for ever helps nobody."""
    world.retime(retry_budget=3)
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F18", times=1000, match={"payment_ref": f"pi_{order}"})
    world.until(lambda: Task.objects.get(id=task.id).parked_reason == "dead_letter")
    task.refresh_from_db()
    assert task.status == "ready" and "401" in task.last_error
    assert world.events(task).count("operation.not_sent") <= world.timing.retry_budget + 1
    assert world.effects(order) == []


def test_a_provider_that_cannot_be_reached_is_tried_ever_more_slowly_and_parks_nothing(world: World) -> None:
    """M36: an outage of somebody else uses up no budget, but the pauses grow."""

    def refused(real: Any, *args: Any, **kwargs: Any) -> Any:
        return NotSent("NewConnectionError", Observation("POST", None, None, None, None, "", "bent"))

    world.retime(retry_budget=3)
    order = world.order()
    task = world.ask(order, 1000)
    bend(world, payments={"create_refund": refused})
    world.until(lambda: world.events(task).count("operation.not_sent") > 5)
    task.refresh_from_db()
    assert task.parked_reason is None and task.starts == world.timing.retry_budget - 1
    world.retime()
    world.finish(task)
    assert task.status == "completed"


def test_a_cancel_that_the_provider_refuses_is_not_asked_again_at_once(world: World) -> None:
    """Row 4, M33: look, cancel, refused, look, cancel … without a pause would be a storm of our own making."""
    world.retime(reconcile_after=[60], reconcile_every=60, pending_after=[0.05], pending_every=60)
    order = world.order()
    task = world.ask(order, 1000)
    match = {"payment_ref": f"pi_{order}"}
    world.sandbox.fault("F22", times=1, match=match)
    world.until(lambda: "operation.pending" in world.events(task))
    world.sandbox.fault("F18", times=1000, on="cancel")
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    world.until(lambda: "operation.cancel_submitted" in world.events(task))
    world.work()
    assert world.events(task).count("operation.cancel_submitted") == 1


def test_the_backoff_of_something_tried_very_often_is_still_a_number() -> None:
    """An order system that refuses one record for a week must not end every wake job with an overflow."""
    timing = Timing()
    assert 0 < backoff(timing, 100_000) <= timing.retry_most * 1.2


def test_a_lock_that_another_process_still_holds_delays_and_does_not_park(world: World) -> None:
    """Rule 1: a paused sender keeps its lock. Waiting for it is no failure of the task."""
    world.retime(retry_budget=3)
    order = world.order()
    task = world.ask(order, 1000)
    other = SenderLocks()
    assert other.take(UUID(operation_of(task)))
    try:
        world.until(lambda: Task.objects.get(id=task.id).fence > world.timing.retry_budget + 3)
        task.refresh_from_db()
        assert (task.status, task.parked_reason) == ("ready", None)
    finally:
        other.close()
    world.finish(task)
    assert task.status == "completed" and len(world.effects(order)) == 1


def test_an_order_that_is_never_twice_the_same_does_not_keep_a_worker_to_itself(world: World) -> None:
    """M26: a destination that changes at every read sends the task back each time; not without a pause, though."""
    reads = []

    def flaps(real: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(1)
        answer = real(*args, **kwargs)
        return answer if len(reads) > 60 else replace(answer, destination=f"bank {len(reads)}")

    world.retime(retry_first=60, retry_most=60)
    order = world.order()
    task = world.ask(order, 1000)
    bend(world, orders={"read_order": flaps})
    world.work()
    assert world.events(task).count("task.judged_anew") <= 2
    assert world.effects(order) == []
