"""Whose looks they are: other accounts' go on beside a provider that hangs, and the watch's keep the same pace."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from django.db import connection

from runtime_app import accounts, looks, rows, sweep, watch
from runtime_app.ledger import looks as asked_looks
from runtime_app.models import Operation, PaymentLook, Task
from runtime_app.tasks import Request, create
from tests.attack.bent import bend
from tests.pace.doubt import account_of, in_doubt, last_request, pace_of, requests_since, swept_pages, wish_sweep
from tests.world import World


def test_an_account_whose_provider_hangs_keeps_no_thread_from_another_tenants_looks(world: World) -> None:
    """M23: at most so many looks at one account are under way in a worker, however slow they are."""
    in_doubt(world, F4=12)
    order = world.order(tenant=world.birch)
    world.sandbox.fault("F4", times=1, on="create", match={"payment_ref": f"pi_{order}"})
    request = Request("refund", order, amount_minor=1000, currency="USD")
    theirs = create(world.bea, world.birch, request, request_key="k-birch").task
    world.until(lambda: Operation.objects.filter(task=theirs, state="unknown").exists())
    hold, hanging = threading.Event(), list[str]()

    def hangs(real: Any, account: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs["payment_ref"] != f"pi_{order}":
            hanging.append(kwargs["payment_ref"])
            assert hold.wait(10)
        return real(account, *args, **kwargs)

    world.retime(look_abreast=3, lease=60.0)
    drain = bend(world, payments={"find_refunds": hangs}, effects=4, batch=40)
    world.clock(hours=2)
    rows.run("UPDATE runtime_app_task SET due_at = runtime_now() WHERE id = %s", [theirs.id])

    def work() -> None:
        drain.run(8.0, lambda: None)
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        seen = wait_for_end(theirs, worker)
        assert seen == "completed" and len(hanging) == 3
    finally:
        hold.set()
        worker.join(60)


def wait_for_end(task: Task, beside: threading.Thread) -> str:
    while beside.is_alive():
        task.refresh_from_db()
        if task.status == "completed":
            break
        beside.join(0.05)
    return task.status


def test_the_late_watch_waits_while_its_account_is_closed_and_writes_nothing_down(world: World) -> None:
    """M11: a look at a proved outcome is a look at the account like any other."""
    task = world.ask(world.order(), 1000)
    world.finish(task)
    operation = world.operation(task)
    rows.run(
        "INSERT INTO runtime_app_accountpace (account_id, tokens, refilled_at, troubles, closed_until)"
        " VALUES (%s, 9, runtime_now(), 5, runtime_now() + interval '1 hour')", [account_of(world).id],
    )
    watch.hint(operation.id)
    before, calls = last_request(world), operation.calls.count()
    assert watch.watch(world.ports(), actor="worker:in-test") == 1
    assert not requests_since(world, before) and operation.calls.count() == calls
    operation.refresh_from_db()
    opens = pace_of(world).closed_until
    assert opens is not None and operation.next_check_at is not None and operation.next_check_at >= opens
    world.clock(hours=3)
    assert watch.watch(world.ports(), actor="worker:in-test") == 1
    assert len(requests_since(world, before)) == 1
    assert pace_of(world).closed_until is None, "its good answer opens the account for all"


def test_a_look_at_a_payment_waits_too_and_that_is_no_try(world: World) -> None:
    asked_looks.ask(world.amber.id, "stripe", "pi_x", "test")
    rows.run(
        "INSERT INTO runtime_app_accountpace (account_id, tokens, refilled_at, troubles, closed_until)"
        " VALUES (%s, 9, runtime_now(), 5, runtime_now() + interval '1 hour')", [account_of(world).id],
    )
    before = last_request(world)
    assert looks.work(world.ports(), actor="worker:in-test") == 1
    assert not requests_since(world, before) and PaymentLook.objects.get().tries == 0
    world.clock(hours=3)
    world.sandbox.fault("F27", times=1, on="list")
    assert looks.work(world.ports(), actor="worker:in-test") == 1
    assert len(requests_since(world, before)) == 1 and pace_of(world).troubles == 6


def test_an_account_whose_list_cannot_be_read_is_looked_at_one_by_one_however_many_wait(world: World) -> None:
    """A bank shows a payment and no list: nobody wishes to sweep it, and who finds such a wish does not."""
    in_doubt(world, F4=14)
    account = accounts.opened(account_of(world))
    able = world.ports().provider(account).capabilities(account)
    world.retime(sweep_from=11, look_rate=0.001, look_burst=2)
    drain = bend(world, payments={"capabilities": lambda real, account: replace(able, sweeps=False)})
    world.clock(hours=2)
    before = last_request(world)
    drain.run(3.0, lambda: None)
    assert pace_of(world).sweep_due_at is None
    wish_sweep(world)
    assert sweep.work(drain.ports, actor="worker:in-test") == 1
    assert not swept_pages(requests_since(world, before)) and pace_of(world).sweep_due_at is None
    world.drain.close()
    world.drain = world.worker("able")
    rows.run("UPDATE runtime_app_accountpace SET sweep_since = NULL, tokens = 0, refilled_at = runtime_now()")
    rows.run("UPDATE runtime_app_task SET due_at = runtime_now() WHERE status = 'reconciling'")
    world.work()
    assert pace_of(world).sweep_due_at is not None, "the same number is worth a sweep where there is a list"
