"""A send keeps the deadline that was written down for it, and a run that is cut off sends nothing more."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from rq.timeouts import JobTimeoutException, UnixSignalDeathPenalty

from runtime_app import rows
from runtime_app.drain import Hand
from runtime_app.models import Call, Operation
from tests.attack.bent import bend
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
