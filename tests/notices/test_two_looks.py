"""Notices come in twos and threes, and several workers look at once: the money is booked once all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db import connection, transaction

from runtime_app import rows, tasks, watch
from runtime_app.ledger import cases
from runtime_app.models import Balance, Call, Case, Hold, Task
from tests.attack.bent import Bent
from tests.notices.teller import Teller, event, handled, status, until
from tests.notices.test_hints import NEVER
from tests.world import World


def _two_at_once(world: World, hint: Callable[[], object]) -> None:
    """One worker's look is at the provider when a notice comes; another's begins then, and ends first."""
    asked, answer, ports = threading.Event(), threading.Event(), world.ports()

    def held_back(real: Any, *args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        asked.set()
        assert answer.wait(30)
        return result

    slow = replace(ports, providers={"stripe": Bent(ports.providers["stripe"], find_refunds=held_back)})

    def first() -> None:
        try:
            watch.watch(slow, actor="worker:slow", limit=1)
        finally:
            connection.close()

    hint()
    worker = threading.Thread(target=first)
    worker.start()
    try:
        assert asked.wait(30)
        hint()
        assert watch.watch(ports, actor="worker:quick", limit=1) == 1
    finally:
        answer.set()
        worker.join(30)


def _looks_made(task: Task) -> int:
    return Call.objects.filter(operation__task=task, kind="query", ended_at__isnull=False).count()


def _late(world: World) -> tuple[str, Task]:
    """A refund that was proved absent, cancelled as wished, and lands now."""
    order = world.order()
    world.sandbox.fault("F20", times=1, match={"payment_ref": f"pi_{order}"}, seconds=20_000)
    task = world.ask(order, 1000)
    world.until(lambda: status(task) == "reconciling")
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    world.finish(task, seconds=30)
    assert world.operation(task).state == "not_executed"
    world.sandbox.advance(20_000)
    assert len(world.effects(order)) == 1
    return order, task


def test_a_late_execution_that_two_workers_see_is_booked_once(world: World) -> None:
    """Row 23, I8."""
    order, task = _late(world)
    operation = world.operation(task)
    _two_at_once(world, lambda: watch.hint(operation.id))
    assert world.operation(task).state == "succeeded"
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.refunded_minor, balance.excess_minor) == (1000, 0)
    assert world.events(task).count("operation.succeeded") == 1 and Case.objects.count() == 1


def test_a_return_that_two_workers_see_is_told_once(world: World) -> None:
    """Row 24, I8."""
    world.retime(**NEVER)
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    operation = world.operation(task)
    world.sandbox.set_refund(str(world.effects(order)[0]["id"]), "failed")
    _two_at_once(world, lambda: watch.hint(operation.id))
    assert world.operation(task).state == "returned"
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 0
    assert world.events(task).count("operation.returned") == 1 and Case.objects.count() == 1


def test_a_duplicate_that_a_person_has_dealt_with_is_not_booked_again(world: World, stripe: Teller) -> None:
    """Row 8, F32: the excess was recorded and its case closed; a notice that comes after that finds nothing new."""
    world.retime(**NEVER)
    order = world.order()
    world.sandbox.fault("F32", times=1, match={"payment_ref": f"pi_{order}"})
    task = world.ask(order, 1000)
    world.finish(task)
    assert len(world.effects(order)) == 2
    stripe.tell(event(operation=world.operation(task).id, status="succeeded"))
    until(world, lambda: Case.objects.exists())
    case = Case.objects.get(class_name="DUPLICATE_EXECUTION")
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 2000
    with transaction.atomic():
        now = rows.run("SELECT runtime_now()")[0][0]
        assert cases.close(case.id, tenant_id=world.amber.pk, outcome="collected", actor="olga", now=now)
    looked = _looks_made(task)
    told = stripe.tell(event(operation=world.operation(task).id, status="succeeded"))
    assert handled(world, told)
    until(world, lambda: _looks_made(task) > looked)
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 2000
    assert sum(h.amount_minor for h in Hold.objects.filter(task=task, state="consumed")) == 2000
    assert Case.objects.count() == 1
