"""Figures and marks that two things touch at once: two orders, two cases, a hold and money from outside (I1, I8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

from django.db import transaction

from runtime_app import looks, rows, tasks, watch
from runtime_app.adapters.payments.types import Absent, Found, Mismatch, ProviderRefund, RefundStatus
from runtime_app.ledger import looks as asked
from runtime_app.ledger.balances import keep_provider_external
from runtime_app.ledger.cases import OpenCase
from runtime_app.models import Balance, Case, PaymentLook
from runtime_app.money import Money
from tests.attack.bent import Bent, bend
from tests.notices.teller import now
from tests.world import World


def test_a_payment_that_is_known_as_another_orders_is_refused_with_its_name(world: World) -> None:
    """M03: its refunds were invisible from the second order, whose own refund was then put off for ever."""
    order, other = world.order(), world.order()
    task = world.ask(order, 1000)
    world.finish(task)

    def read(real: Any, *args: Any, **kwargs: Any) -> Any:
        answer = real(*args, **kwargs)
        if answer.order_ref != other:
            return answer
        return replace(answer, payments=tuple(replace(p, payment_ref=f"pi_{order}") for p in answer.payments))

    bend(world, orders={"read_order": read})
    for amount in (500, 6000):
        second = world.ask(other, amount)
        world.finish(second)
        assert second.status == "failed"
        said = world.said(second, "task.failed")
        assert said["why"] == f"The payment pi_{order} is known as of order {order}."
    assert len(world.effects(order)) == 1 and Balance.objects.get().order_ref == order


def test_an_excess_goes_with_the_hold_that_made_it(world: World) -> None:
    """I1: money went out beside a hold; when the hold is given back, nothing is too much any more."""
    order = world.order(10_000)
    task = world.ask(order, 6000)
    world.decide(world.ada, world.approval(task))
    with transaction.atomic():
        keep_provider_external(Balance.objects.get().id, 7000)
    assert Balance.objects.get().excess_minor == 3000
    tasks.cancel(world.rita, task.pk, reason="changed my mind")
    balance = Balance.objects.get()
    assert (balance.reserved_minor, balance.excess_minor) == (0, 0)


def test_a_task_goes_on_wearing_the_mark_of_a_case_that_no_proof_closes(world: World) -> None:
    """M23: a statement's case is open while the outcome is in doubt; the proof of the outcome does not answer it."""
    order = world.order()
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    world.retime(reconcile_after=[86400.0])
    task = world.ask(order, 1000)
    world.until(lambda: "operation.unknown" in world.events(task))
    case = OpenCase("AMOUNT_UNDER", "stripe", f"pi_{order}", order, world.operation(task).id, 1000, "USD")
    with transaction.atomic():
        case.store(tenant_id=world.amber.pk, task_id=task.pk, now=now())
    rows.run("UPDATE runtime_app_task SET attention = 'AMOUNT_UNDER' WHERE id = %s", [task.pk])
    world.clock(days=2)
    world.finish(task)
    assert (task.status, task.attention) == ("completed", "AMOUNT_UNDER")


def test_many_who_ask_at_once_do_not_make_a_disagreement_of_a_lag(world: World) -> None:
    """C03, F25: siblings that find the total unexplained have the payment looked at again and again; the provider's
    list is a few seconds late."""
    world.retime(absent_age=300.0)
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    late = [True]

    def total(real: Any, *args: Any, **kwargs: Any) -> Any:
        told = real(*args, **kwargs)
        return replace(told, refunded=replace(told.refunded, minor=told.refunded.minor + 700 * late[0]))

    ports = world.ports()
    ports = replace(ports, providers={"stripe": Bent(ports.providers["stripe"], retrieve_payment=total)})
    for _ in range(12):
        asked.ask(world.amber.pk, "stripe", f"pi_{order}", "the total is not explained")
        assert looks.work(ports, actor="worker:in-test") == 1
    assert not Case.objects.exists()
    world.clock(minutes=6)
    assert looks.work(ports, actor="worker:in-test") == 1
    assert Case.objects.get().class_name == "BALANCE_DISAGREES" and PaymentLook.objects.get().due_at is None


def test_an_answer_that_is_another_operations_refund_does_not_take_its_reference(world: World) -> None:
    """I2: answers were mixed up on the way. The refund's own operation must be able to own it."""
    order, other = world.order(), world.order()
    owner = str(uuid4())

    def mixed(real: Any, account: Any, request: Any, **kwargs: Any) -> Any:
        answer = real(account, request, **kwargs)
        wrong = ProviderRefund("re_others", owner, f"pi_{other}", Money(1000, "USD"), RefundStatus.SUCCEEDED)
        return Mismatch(wrong, ("payment", "operation"), answer.seen)

    bend(world, payments={"create_refund": mixed})
    task = world.ask(order, 1000)
    world.until(lambda: Case.objects.filter(task=task).exists())
    assert world.operation(task).provider_ref is None
    world.drain.close()
    world.drain = world.worker("in-test")
    rows.run("UPDATE runtime_app_task SET due_at = runtime_now() WHERE id = %s", [task.pk])
    world.finish(task)
    assert task.status == "completed" and world.operation(task).provider_ref == world.effects(order)[0]["id"]


def test_a_reference_that_leads_to_another_operations_refund_proves_nothing(world: World) -> None:
    """Row 19: the list does not show ours, and what the provider shows by the name it gave us is somebody else's."""
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    operation = world.operation(task)

    def absent(real: Any, *args: Any, **kwargs: Any) -> Any:
        return Absent(real(*args, **kwargs).seen)

    def others(real: Any, *args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        one = replace(found.refunds[0], operation_ref=str(uuid4()), status=RefundStatus.FAILED)
        return Found((one,), found.seen)

    ports = world.ports()
    bent = Bent(ports.providers["stripe"], find_refunds=absent, retrieve_refund=others)
    assert watch.hint(operation.id)
    watch.watch(replace(ports, providers={"stripe": bent}), actor="worker:in-test", limit=1)
    operation.refresh_from_db()
    assert operation.state == "succeeded"
