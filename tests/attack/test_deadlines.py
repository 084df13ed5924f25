"""A send keeps the deadline that was written down for it, and a run that is cut off sends nothing more."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from rq.timeouts import JobTimeoutException, UnixSignalDeathPenalty

from runtime_app import rows
from runtime_app.adapters.payments.types import NotSent, Observation
from runtime_app.drain import Hand
from runtime_app.models import Call, Operation, Task
from runtime_app.states import Status
from tests.attack.bent import bend
from tests.sandbox_process import wait_until
from tests.world import World


def test_nothing_is_sent_after_the_last_possible_send_that_was_written_down(world: World) -> None:
    """Rule 1, row 16: horizons count from it. A send that waited for a thread, its lease renewed, comes too late."""
    world.retime(lease=3.0)
    sends: list[tuple[datetime, datetime]] = []

    def send(real: Any, account: Any, request: Any, **kwargs: Any) -> Any:
        query = "SELECT runtime_now(), last_possible_send_at FROM runtime_app_operation WHERE id = %s"
        [(now, until)] = rows.run(query, [request.operation_id])
        connection.close()
        if kwargs["deadline"].left > 0:
            sends.append((now, until))
        return real(account, request, **kwargs)

    orders = [world.order() for _ in range(8)]
    wanted = [world.ask(order, 1000) for order in orders]
    world.sandbox.fault("F5", times=8, seconds=0.8)
    bend(world, payments={"create_refund": send}, effects=1)
    world.finish(*wanted, seconds=60)
    assert all(now <= until for now, until in sends), [str(now - until) for now, until in sends if now > until]
    assert all(len(world.effects(order)) == 1 for order in orders)


def test_a_run_that_is_cut_off_starts_none_of_the_sends_that_waited_for_a_thread(world: World) -> None:
    """C22: nobody will record their answers any more, so they are not to happen."""
    sent: list[UUID] = []
    reached, go_on = threading.Event(), threading.Event()

    def send(real: Any, account: Any, request: Any, **kwargs: Any) -> Any:
        sent.append(request.operation_id)
        reached.set()
        go_on.wait(20)
        return real(account, request, **kwargs)

    orders = [world.order() for _ in range(3)]
    for order in orders:
        world.ask(order, 1000)
    drain = bend(world, payments={"create_refund": send}, effects=1)
    limit = UnixSignalDeathPenalty(3, JobTimeoutException)  # type: ignore[no-untyped-call]
    with pytest.raises(JobTimeoutException), limit:
        drain.run(60.0, lambda: None)
    assert reached.is_set()
    go_on.set()
    drain.pool.shutdown(wait=True)
    assert len(sent) == 1 and len([o for o in orders if world.effects(o)]) <= 1
    assert Call.objects.filter(kind="submit").count() == Operation.objects.count()


def test_the_time_limit_is_not_taken_for_a_failure_of_the_step_it_strikes(world: World) -> None:
    """C22: RQ's time limit is an ordinary Exception, so a broad handler would swallow it."""

    def strikes(facts: Any, ports: Any) -> Any:
        raise JobTimeoutException("too long")

    world.ask(world.order(), 1000)
    [hand] = world.drain._claim(5)
    assert isinstance(hand, Hand)
    with pytest.raises(JobTimeoutException):
        world.drain._step(hand, strikes, "on_queued", False)
    world.drain.hands.clear()


def test_the_window_of_a_key_begins_with_the_first_send_that_may_have_arrived(world: World) -> None:
    """Rows 10, 11: what was proved not to have been sent is no first submit. A day of refused connections uses up
    neither the time in which the key may be sent again nor the age that an absence needs."""
    refuse = [True]

    def send(real: Any, account: Any, request: Any, **kwargs: Any) -> Any:
        if refuse:
            refuse.pop()
            return NotSent("NewConnectionError", Observation("POST", None, None, None, None, "", "bent"))
        return real(account, request, **kwargs)

    world.retime(retry_first=60)
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F2", times=1, match={"payment_ref": f"pi_{order}"})
    bend(world, payments={"create_refund": send})
    world.until(lambda: "operation.not_sent" in world.events(task))
    world.clock(hours=23)
    world.finish(task)
    assert task.status == "completed" and len(world.effects(order)) == 1
    assert "case.opened" not in world.events(task)


def test_one_slow_answer_does_not_keep_the_worker_from_claiming_other_work(world: World) -> None:
    """M26, rule 17: what is asked for meanwhile is done meanwhile, by the same worker."""
    slow, quick = world.order(), world.order()
    done: list[bool] = []

    def send(real: Any, account: Any, request: Any, **kwargs: Any) -> Any:
        if request.payment_ref == f"pi_{slow}":
            world.ask(quick, 1000)
            connection.close()
            end = time.monotonic() + 15
            while not world.effects(quick) and time.monotonic() < end:
                time.sleep(0.05)
            done.append(bool(world.effects(quick)))
        return real(account, request, **kwargs)

    world.retime(lease=30.0, drain_budget=20.0)
    task = world.ask(slow, 1000)
    bend(world, payments={"create_refund": send})
    world.finish(task, seconds=60)
    assert done[0]
    world.finish(*Task.objects.all())


def test_an_approvers_question_that_nobody_answers_ends_like_every_missing_input(world: World) -> None:
    """State table: a passed input deadline is the system's cancel, whoever asked for the input."""
    task = world.ask(world.order(), 6000)
    world.decide(world.ada, world.approval(task), "ask_input", "Which item came back?")
    task.refresh_from_db()
    assert task.status == "waiting_input" and task.due_at is not None
    world.clock(days=31)
    world.finish(task)
    assert task.status == "cancelled"


def test_a_worker_that_is_told_to_stop_sends_nothing_more_and_leaves_the_rest_to_others(world: World) -> None:
    """M18, SIGTERM: what waits for a thread is proved not sent; another worker does it, and nothing is in doubt."""
    sent: list[UUID] = []

    def send(real: Any, account: Any, request: Any, **kwargs: Any) -> Any:
        sent.append(request.operation_id)
        # The others are handed over as well, and wait for this thread.
        wait_until(lambda: [hand.task.status for hand in list(drain.hands.values())].count(Status.EXECUTING) == 3)
        drain.stop.set()
        return real(account, request, **kwargs)

    orders = [world.order() for _ in range(3)]
    wanted = [world.ask(order, 1000) for order in orders]
    drain = bend(world, payments={"create_refund": send}, effects=1)
    drain.run(30.0, lambda: None)
    assert drain.stop.is_set() and len(sent) == 1
    assert not [task for task in wanted if "operation.unknown" in world.events(task)]
    world.retime()
    world.finish(*wanted)
    assert all(len(world.effects(order)) == 1 for order in orders)
    assert not [task for task in wanted if "operation.unknown" in world.events(task)]
