"""Accounts that are not there, or whose secrets nobody can open: their own refunds wait, and all others go on."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from django.conf import settings

from runtime_app import accounts, looks, sweep, tasks, watch
from runtime_app.ledger import looks as asked_looks
from runtime_app.models import Account, AccountPace, Case, Operation, PaymentLook, Task
from runtime_app.tasks import Request
from runtime_app.workflows.refund import facts
from tests.notices.teller import now
from tests.world import World


def _of_birch(world: World) -> tuple[str, Task]:
    order = world.order(tenant=world.birch)
    request = Request("refund", order, amount_minor=1000, currency="USD")
    return order, tasks.create(world.bea, world.birch, request, request_key=f"k-{uuid4().hex}").task


def _lost(world: World) -> tuple[str, Task]:
    """A refund in doubt: its answer was lost."""
    order = world.order()
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    world.retime(reconcile_after=[86400.0], reconcile_every=86400.0)
    task = world.ask(order, 1000)
    world.until(lambda: "operation.unknown" in world.events(task))
    return order, task


def _seal_birch_with(key: bytes) -> None:
    Account.objects.filter(tenant__slug="birch").update(
        api_key_sealed=Fernet(key).encrypt(b"sk_test_world").decode())


def test_secrets_that_cannot_be_opened_hold_up_their_own_tenant_only(world: World) -> None:
    """M31: the seal key of one tenant's secrets was lost. Claimed in one batch with another tenant's refund."""
    own = settings.SEAL_KEYS[0]
    _seal_birch_with(Fernet.generate_key())
    _, waits = _of_birch(world)
    task = world.ask(world.order(), 1000)
    world.finish(task)
    assert task.status == "completed"
    waits.refresh_from_db()
    assert (waits.status, waits.parked_reason) == ("queued", None) and "account" in waits.last_error
    _seal_birch_with(own.encode() if isinstance(own, str) else own)
    world.finish(waits)
    assert waits.status == "completed"


def test_what_is_looked_at_beside_tasks_is_not_held_up_either(world: World) -> None:
    """Looks, watches and sweeps of other tenants go on."""
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    birch_order, done = _of_birch(world)
    world.finish(done)
    _seal_birch_with(Fernet.generate_key())
    for tenant, ref in ((world.birch, birch_order), (world.amber, order)):
        asked_looks.ask(tenant.pk, "stripe", f"pi_{ref}", "a test")
    for each in (done, task):
        assert watch.hint(Operation.objects.get(task=each).id)
    ports = world.ports()
    world.until(lambda: looks.work(ports, actor="worker:in-test") + watch.watch(ports, actor="worker:in-test") == 0)
    assert PaymentLook.objects.get(tenant=world.amber).looked_at is not None
    assert Operation.objects.get(task=task).evidence.filter(kind="provider_query").exists()
    account = Account.objects.get(tenant=world.birch)
    AccountPace.objects.update_or_create(account=account, defaults={"sweep_due_at": done.created_at})
    assert sweep.work(ports, actor="worker:in-test") == 1


def test_an_operation_whose_account_is_not_there_waits_and_then_asks_for_a_person(world: World) -> None:
    """M23: a database of 0.1.0, which knew no accounts, has operations in doubt. None is lost or parked for it."""
    order, task = _lost(world)
    world.retime(retry_most=0.01, retry_budget=3, reconcile_after=[0.01], reconcile_every=0.01)
    Task.objects.filter(pk=task.pk).update(due_at=task.created_at)
    AccountPace.objects.all().delete()
    Account.objects.all().delete()
    for _ in range(8):
        world.work()
    task.refresh_from_db()
    assert (task.status, task.parked_reason, task.starts <= 3) == ("reconciling", None, True)
    assert "account" in task.last_error
    world.clock(hours=25)
    world.until(lambda: Case.objects.filter(task=task, class_name="LOOKUP_UNAVAILABLE", state="open").exists())
    accounts.keep(world.amber, "stripe", provider="stripe", api_key="sk_test_world", base_url=world.sandbox.url,
                  is_default=True)
    world.finish(task)
    assert task.status == "completed" and len(world.effects(order)) == 1
    assert Case.objects.get().state == "closed"


def test_no_other_account_pays_while_the_default_one_is_closed(world: World) -> None:
    """M15: an account that is closed is not replaced by whichever comes next in the list."""
    accounts.keep(world.amber, "another", provider="stripe", api_key="sk_test_world", base_url=world.sandbox.url)
    Account.objects.filter(tenant=world.amber, ref="stripe").update(closed_at=now())
    order = world.order()
    task = world.ask(order, 1000)
    world.until(lambda: Task.objects.get(pk=task.pk).last_error)
    task.refresh_from_db()
    assert task.last_error == "this tenant has no open account stripe at a payment provider"
    Account.objects.filter(tenant=world.amber, ref="stripe").update(is_default=False)
    accounts.keep(world.amber, "third", provider="stripe", api_key="sk_test_world", base_url=world.sandbox.url)
    world.until(lambda: "none of this tenant's accounts" in Task.objects.get(pk=task.pk).last_error)
    assert world.effects(order) == []
    Account.objects.filter(tenant=world.amber, ref="third").update(is_default=True)
    world.finish(task)
    assert Operation.objects.get(task=task).account == "third"


def test_facts_that_cannot_be_read_hold_up_their_own_task_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """M25: with a budget like any other step."""
    world.retime(retry_budget=3)
    poison, task = world.ask(world.order(), 1000), world.ask(world.order(), 1000)
    real = facts._orders

    def orders(wanted: Any) -> Any:
        if any(ref == poison.order_ref for _, ref in wanted):
            raise ValueError("what no reader expected")
        return real(wanted)

    monkeypatch.setattr(facts, "_orders", orders)
    world.finish(task)
    assert task.status == "completed"
    world.until(lambda: Task.objects.get(pk=poison.pk).parked_reason == "dead_letter")
    poison.refresh_from_db()
    assert poison.last_error.startswith("ValueError")
