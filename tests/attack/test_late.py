"""What turns up after a cancel is believed for what it is, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings

from runtime_app import jobs, outbox, tasks, watch
from runtime_app.adapters.payments.types import Found, ProviderRefund, RefundStatus
from runtime_app.models import Balance
from runtime_app.money import Money
from tests.attack.bent import Bent
from tests.world import World


def test_a_late_refund_that_is_only_pending_is_shown_and_not_booked(world: World) -> None:
    """C06, row 23: accepted is not done. People are told at once; the balance follows when the money moves."""
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F2", times=1, match={"payment_ref": f"pi_{order}"})
    world.until(lambda: "operation.unknown" in world.events(task))
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    world.finish(task, seconds=30)
    operation = world.operation(task)
    assert (task.status, operation.state) == ("cancelled", "not_executed")
    status = [RefundStatus.PENDING]

    def finds(real: Any, *args: Any, **kwargs: Any) -> Any:
        refund = ProviderRefund("re_late", str(operation.id), f"pi_{order}", Money(1000, "USD"), status[0])
        return Found((refund,), real(*args, **kwargs).seen)

    ports = world.ports()
    ports = replace(ports, providers={"stripe": Bent(ports.providers["stripe"], find_refunds=finds)})
    world.until(lambda: watch.watch(ports, actor="worker:in-test"))
    task.refresh_from_db()
    operation.refresh_from_db()
    assert (task.attention, operation.state) == ("LATE_EXECUTION", "not_executed")
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 0
    world.until(lambda: watch.watch(ports, actor="worker:in-test"))
    assert world.events(task).count("case.opened") == 1
    status[0] = RefundStatus.SUCCEEDED
    world.until(lambda: watch.watch(ports, actor="worker:in-test"))
    operation.refresh_from_db()
    assert operation.state == "succeeded" and Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 1000


def test_the_net_under_the_late_watch_and_the_outbox_leaves_the_worker_to_its_tasks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M26: a provider or an order system that hangs costs a wake job its own time, not the job's whole limit."""
    looks: list[int] = []

    def always_more(*args: Any, limit: int, **kwargs: Any) -> int:
        looks.append(limit)
        return limit

    monkeypatch.setattr(watch, "watch", always_more)
    monkeypatch.setattr(outbox, "relay", always_more)
    monkeypatch.setattr(settings, "TIMING", world.timing.with_values({"drain_budget": 0}))
    jobs.relay()
    jobs.look_around("default")
    assert looks == [5, 1]
