"""A batch of many does what each of them alone would do, and waits for nobody in a circle."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
from django.db import connection

from approvals.requests import CloseApprovals
from runtime_app import rows
from runtime_app.chronicle import Say
from runtime_app.ledger.balances import ConsumeLate, EndHold, KeepBalance
from runtime_app.models import Balance, Hold, Task
from runtime_app.states import Status
from runtime_app.transitions import Guard, Transition, Wanted, apply
from tests.sandbox_process import wait_until
from tests.world import World

_ADDRESS = {"dbname", "user", "password", "host", "port"}
_ENDED = (Say("hold.released"), Say("task.cancelled", {"why": "a test"}))
_ANEW = (Say("approval.superseded", {"why": "a test", "changed": []}), Say("task.judged_anew", {"why": "a test"}))
_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def _approved(world: World, order: str) -> Task:
    """A task that holds its amount, and that nobody works on."""
    task = world.ask(order, 6000)
    world.decide(world.ada, world.approval(task))
    task.refresh_from_db()
    return task


def _guard(task: Task) -> Guard:
    return Guard(task.pk, task.revision, Status(task.status))


def test_a_batch_that_keeps_one_balance_and_ends_the_hold_on_another_takes_them_in_the_one_order(
    world: World,
) -> None:
    """Two such batches of two workers, each with the other's payments, ended in a deadlock: rule 7 is of a batch."""
    low, high = sorted([world.order(), world.order()])
    keeps = world.ask(high, 6000)
    world.approval(keeps)
    ends = _approved(world, low)
    keeps.refresh_from_db()
    first, second = (Balance.objects.get(payment_ref=f"pi_{order}") for order in (low, high))
    version = second.read_version
    kept = KeepBalance("stripe", high, f"pi_{high}", "USD", 10_000, 0, version)
    closed = CloseApprovals("superseded", "a test")
    wanted = [
        Wanted(_guard(ends), Transition(Status.CANCELLED, _ENDED, parts=(EndHold(consumed=False),)), "a test"),
        Wanted(_guard(keeps), Transition(Status.QUEUED, _ANEW, parts=(kept, closed)), "a test"),
    ]
    done: list[Any] = []

    def act() -> None:
        try:
            done.extend(apply(wanted))
        finally:
            connection.close()

    params = {k: v for k, v in connection.get_connection_params().items() if k in _ADDRESS}
    with psycopg.connect(**params) as other:
        other.execute("SELECT 1 FROM runtime_app_balance WHERE id = %s FOR NO KEY UPDATE", [first.id])
        thread = threading.Thread(target=act)
        thread.start()
        try:
            wait_until(lambda: rows.run(_WAITS))
            other.execute("SELECT 1 FROM runtime_app_balance WHERE id = %s FOR NO KEY UPDATE NOWAIT", [second.id])
        finally:
            other.rollback()
            thread.join(30)
    assert len(done) == 2 and Hold.objects.get(task=ends).state == "released"


def test_a_batch_that_ends_a_hold_and_books_what_moved_late_counts_both(world: World) -> None:
    """I8: different parts of one transition, and of one batch, on one balance."""
    order = world.order()
    task = _approved(world, order)
    parts = (EndHold(consumed=False), ConsumeLate("stripe", f"pi_{order}", 700))
    apply([Wanted(_guard(task), Transition(Status.CANCELLED, _ENDED, parts=parts), "a test")])
    balance = Balance.objects.get()
    assert (balance.reserved_minor, balance.refunded_minor) == (0, 700)
    rows.run("UPDATE runtime_app_task SET attention = 'LATE_EXECUTION' WHERE id = %s", [task.pk])
    Hold.objects.filter(state="consumed").update(state="returned")
    Balance.objects.update(refunded_minor=0)
