"""Looks at whole payments: nothing that was asked for is forgotten, and what does not add up reaches a person."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import connection

from runtime_app import looks, rows, tasks
from runtime_app.ledger import looks as asked
from runtime_app.models import Balance, Case, Operation, PaymentLook, Task
from runtime_app.workflows.types import Ports
from tests.attack.bent import Bent
from tests.notices.teller import until
from tests.sandbox_process import wait_until
from tests.world import World

QUIET = {"late_watch_every": 86400.0}


def _ask(world: World, order: str) -> None:
    asked.ask(world.amber.pk, "stripe", f"pi_{order}", "a test")


def _bent(world: World, **bends: Any) -> Ports:
    ports = world.ports()
    return replace(ports, providers={"stripe": Bent(ports.providers["stripe"], **bends)})


def _known(world: World) -> tuple[str, Task]:
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    return order, task


def _outside(world: World, order: str, minor: int) -> None:
    world.sandbox.fault("F33", match={"payment_ref": f"pi_{order}"}, amount_minor=minor)


def _external(order: str) -> int:
    return Balance.objects.get(payment_ref=f"pi_{order}").external_provider_minor


def _look_until_told(ports: Ports) -> None:
    def told() -> bool:
        looks.work(ports, actor="worker:in-test")
        return Case.objects.exists()

    wait_until(told)


def test_what_is_asked_for_during_a_look_is_looked_at_afterwards(world: World) -> None:
    """C10: a notice of a dashboard refund comes when the list has just been read. Nothing would ask again."""
    order, _ = _known(world)
    _ask(world, order)

    def then_told(real: Any, *args: Any, **kwargs: Any) -> Any:
        page = real(*args, **kwargs)
        _ask(world, order)
        return page

    assert looks.work(_bent(world, list_refunds=then_told), actor="worker:in-test") == 1
    _outside(world, order, 700)
    assert PaymentLook.objects.get().due_at is not None
    until(world, lambda: _external(order) == 700)


def test_a_look_that_was_overtaken_does_not_write_its_older_picture(world: World) -> None:
    """M03: a worker is paused behind its answer; another one looks meanwhile, and sees more."""
    order, _ = _known(world)
    _ask(world, order)
    read, go_on = threading.Event(), threading.Event()

    def paused(real: Any, *args: Any, **kwargs: Any) -> Any:
        answer = real(*args, **kwargs)
        read.set()
        assert go_on.wait(30)
        return answer

    slow = _bent(world, retrieve_payment=paused)

    worker = threading.Thread(target=_work_once, args=(slow,))
    worker.start()
    try:
        assert read.wait(30)
        _outside(world, order, 700)
        world.clock(minutes=10)  # its claim is over
        assert looks.work(world.ports(), actor="worker:quick") == 1
        assert _external(order) == 700
    finally:
        go_on.set()
        worker.join(30)
    assert _external(order) == 700 and PaymentLook.objects.get().due_at is None


def test_a_duplicate_that_nobody_told_us_of_is_found_when_the_payments_total_does_not_fit(world: World) -> None:
    """F32, row 8: the next refund of the payment found a total that nobody could name, and was put off for ever."""
    world.retime(**QUIET)
    order = world.order()
    world.sandbox.fault("F32", times=1, match={"payment_ref": f"pi_{order}"})
    task = world.ask(order, 1000)
    world.finish(task)
    assert len(world.effects(order)) == 2
    sibling = world.ask(order, 500)
    until(world, lambda: Case.objects.filter(class_name="DUPLICATE_EXECUTION").exists())
    assert Balance.objects.get().refunded_minor == 2000
    until(world, lambda: Task.objects.get(pk=sibling.pk).parked_reason == "case_open")
    assert len(world.effects(order)) == 2


def test_a_sum_that_stays_unexplained_is_shown_to_a_person(world: World) -> None:
    """C03: the provider's refund is of another amount than it said when it was made. Looking again explains nothing."""
    world.retime(**QUIET, retry_first=0.01, retry_most=0.02)
    order, _ = _known(world)

    def shrunk(real: Any, *args: Any, **kwargs: Any) -> Any:
        page = real(*args, **kwargs)
        return replace(page, refunds=tuple(replace(r, amount=replace(r.amount, minor=900)) for r in page.refunds))

    def total(real: Any, *args: Any, **kwargs: Any) -> Any:
        snapshot = real(*args, **kwargs)
        return replace(snapshot, refunded=replace(snapshot.refunded, minor=900))

    ports = _bent(world, list_refunds=shrunk, retrieve_payment=total)
    _ask(world, order)
    _look_until_told(ports)
    case = Case.objects.get()
    assert (case.class_name, case.payment_ref) == ("BALANCE_DISAGREES", f"pi_{order}") and "900" in case.why
    assert PaymentLook.objects.get().due_at is None


def test_a_refund_of_an_operation_that_was_proved_not_sent_reaches_a_person(world: World) -> None:
    """M23: somebody on the way turned the request away after it had arrived. The task was cancelled before it went."""
    world.retime(**QUIET, retry_first=0.01, retry_most=0.02)
    order, _ = _known(world)
    other = world.ask(order, 400)
    world.sandbox.fault("F18", times=50, match={"payment_ref": f"pi_{order}"})
    world.until(lambda: "operation.not_sent" in world.events(other))
    tasks.cancel(world.rita, other.pk, reason="changed my mind")
    world.sandbox.clear_faults()
    never_sent = Operation.objects.get(task=other)
    assert never_sent.state == "prepared"

    def also(real: Any, *args: Any, **kwargs: Any) -> Any:
        page = real(*args, **kwargs)
        ghost = replace(page.refunds[0], ref="re_ghost", operation_ref=str(never_sent.id),
                        amount=replace(page.refunds[0].amount, minor=400))
        return replace(page, refunds=(*page.refunds, ghost))

    def total(real: Any, *args: Any, **kwargs: Any) -> Any:
        snapshot = real(*args, **kwargs)
        return replace(snapshot, refunded=replace(snapshot.refunded, minor=1400))

    ports = _bent(world, list_refunds=also, retrieve_payment=total)
    _ask(world, order)
    _look_until_told(ports)
    case = Case.objects.get()
    assert case.class_name == "BALANCE_DISAGREES" and "prepared" in case.why


@pytest.mark.parametrize("name", ["list_refunds", "retrieve_payment"])
def test_a_look_that_raises_holds_up_its_own_payment_only(world: World, name: str) -> None:
    """M25."""
    poison, _ = _known(world)
    order, _ = _known(world)

    def raises(real: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs["payment_ref"] == f"pi_{poison}":
            raise RuntimeError("an answer that no reader expected")
        return real(*args, **kwargs)

    _ask(world, poison)
    _ask(world, order)
    ports = _bent(world, **{name: raises})
    assert looks.work(ports, actor="worker:in-test", limit=2) == 2
    assert PaymentLook.objects.get(payment_ref=f"pi_{order}").due_at is None
    assert PaymentLook.objects.get(payment_ref=f"pi_{poison}").due_at is not None


_ADDRESS = {"dbname", "user", "password", "host", "port"}
_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def _work_once(ports: Ports) -> None:
    try:
        looks.work(ports, actor="worker:in-test")
    finally:
        connection.close()


def test_an_operation_is_hinted_at_before_the_balance_is_locked(world: World) -> None:
    """A worker that follows a late truth locks the operation and then the balance; nobody waits in a circle."""
    world.retime(**QUIET)
    order, task = _known(world)
    world.sandbox.set_refund(str(world.effects(order)[0]["id"]), "failed")
    _ask(world, order)
    params = {k: v for k, v in connection.get_connection_params().items() if k in _ADDRESS}
    with psycopg.connect(**params) as other:
        other.execute("SELECT 1 FROM runtime_app_operation WHERE task_id = %s FOR NO KEY UPDATE", [task.pk])
        thread = threading.Thread(target=_work_once, args=(world.ports(),))
        thread.start()
        try:
            wait_until(lambda: rows.run(_WAITS))
            other.execute("SELECT 1 FROM runtime_app_balance FOR NO KEY UPDATE NOWAIT")
        finally:
            other.rollback()
            thread.join(30)
    until(world, lambda: world.operation(task).state == "returned")
