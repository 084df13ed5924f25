"""Notices come in twos and threes, and several workers look at once: the money is booked once all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction

from runtime_app import rows, tasks, watch
from runtime_app.ledger import cases
from runtime_app.models import Balance, Call, Case, Hold, Task
from tests.attack.bent import Bent
from tests.notices.teller import Teller, event, handled, status, until
from tests.notices.test_hints import NEVER
from tests.world import World


def _two_at_once(world: World, hint: Callable[[], object], meanwhile: Callable[[], object] = lambda: None) -> None:
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
        meanwhile()
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


def test_an_answer_that_is_older_than_another_look_is_not_the_last_word(world: World) -> None:
    """Row 23: the first look saw it done, the second that it failed after all; the first is recorded last."""
    order, task = _late(world)
    operation, refund = world.operation(task), str(world.effects(order)[0]["id"])
    _two_at_once(world, lambda: watch.hint(operation.id), lambda: world.sandbox.set_refund(refund, "failed"))
    until(world, lambda: world.operation(task).state == "returned")
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 0


def _done(world: World) -> tuple[str, Task, str]:
    world.retime(**NEVER)
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    return order, task, str(world.effects(order)[0]["id"])


def test_a_look_that_was_told_nothing_is_made_again(world: World, stripe: Teller) -> None:
    """C06 and F27: the notice of the late failure comes while the provider cannot be asked."""
    order, task, refund = _done(world)
    world.sandbox.set_refund(refund, "failed")
    world.sandbox.fault("F27", times=2, match={"payment_ref": f"pi_{order}"})
    told = stripe.tell(event(refund, status="failed", kind="refund.failed"))
    handled(world, told)
    until(world, lambda: world.operation(task).state == "returned")
    findings = Call.objects.filter(operation__task=task, kind="query").order_by("started_at")
    assert next(call.finding for call in findings) == "inconclusive"


def test_a_look_that_dies_is_made_again(world: World) -> None:
    """P4: whoever looks may be killed in the middle; the hint is not lost with it."""
    _, task, refund = _done(world)
    world.sandbox.set_refund(refund, "failed")

    def dies(real: Any, *args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    ports = world.ports()
    deadly = replace(ports, providers={"stripe": Bent(ports.providers["stripe"], find_refunds=dies)})
    watch.hint(world.operation(task).id)
    with pytest.raises(KeyboardInterrupt):
        watch.watch(deadly, actor="worker:dies", limit=1)
    assert world.operation(task).state == "succeeded" and not watch.is_anything_due()
    world.clock(seconds=world.timing.lease + 1)
    until(world, lambda: world.operation(task).state == "returned")


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
