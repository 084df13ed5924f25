"""Locks are always taken in one order, and one that is lost takes no work with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection, transaction
from rq.timeouts import JobTimeoutException

from runtime_app import leases, rows
from runtime_app.ledger.balances import EndHold, TakeHold
from runtime_app.ledger.operations import SubmitOperation
from runtime_app.models import Balance, Task
from runtime_app.senders import SenderLocks
from runtime_app.transitions import Locked
from tests.sandbox_process import wait_until
from tests.world import World

_ADDRESS = {"dbname", "user", "password", "host", "port"}


@contextmanager
def _other() -> Iterator[psycopg.Connection[Any]]:
    params = connection.get_connection_params()
    with psycopg.connect(**{k: v for k, v in params.items() if k in _ADDRESS}) as made:
        yield made


def _in_thread(act: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            with transaction.atomic():
                act()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def _waits() -> bool:
    return bool(rows.run(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ))


def _takes_first(table: str, first: UUID, second: UUID, act: Callable[[], object]) -> None:
    """While somebody holds `first`, `act` waits for it and does not hold `second` already."""
    with _other() as mine:
        mine.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR NO KEY UPDATE", [first])
        thread = _in_thread(act)
        try:
            wait_until(_waits)
            mine.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR NO KEY UPDATE NOWAIT", [second])
        finally:
            mine.rollback()
            thread.join()


def test_a_renewal_takes_the_tasks_in_the_order_in_which_a_batch_commits_them(world: World) -> None:
    """Two orders would let a worker's own heart and hand wait for each other in a circle."""
    for _ in range(2):
        world.ask(world.order(), 1000)
    claimed = leases.claim(lane="default", served=["refund/1"], worker="w", limit=2, seconds=60)
    first, second = sorted(claimed, key=lambda c: c.id)
    rows.run("UPDATE runtime_app_task SET last_error = 'moved' WHERE id = %s", [first.id])  # last in the table
    held = [(second.id, second.fence), (first.id, first.fence)]
    _takes_first("runtime_app_task", first.id, second.id, lambda: leases.renew(held, worker="w", seconds=60))
    rows.run("UPDATE runtime_app_task SET last_error = 'again' WHERE id = %s", [first.id])
    _takes_first("runtime_app_task", first.id, second.id, lambda: leases.release(held, worker="w"))


@pytest.mark.parametrize("part", ["take", "end"])
def test_balances_are_taken_in_one_order_by_every_part(world: World, part: str) -> None:
    """Rule 7: by tenant, account and payment, as the reading of the order takes them; never by their ids."""
    low, high = sorted([world.order(), world.order()])
    for order in (high, low):  # so that the order of ids is the other one
        task = world.ask(order, 1000)
        world.until(lambda task=task: "hold.taken" in world.events(task))  # type: ignore[misc]
        world.finish(task)
    balances = {b.payment_ref: b for b in Balance.objects.all()}
    a, z = balances[f"pi_{low}"], balances[f"pi_{high}"]
    assert z.id < a.id
    asked = {order: world.ask(order, 1000) for order in (low, high)}
    locked = [(_locked(asked[order]), order) for order in (high, low)]

    def take() -> None:
        TakeHold.admit([(row, TakeHold("stripe", f"pi_{order}", 1000)) for row, order in locked])
        TakeHold.write([(row, TakeHold("stripe", f"pi_{order}", 1000)) for row, order in locked])

    def end() -> None:
        EndHold.write([(row, EndHold(False)) for row, _ in locked])

    if part == "end":
        take()
        _takes_first("runtime_app_balance", a.id, z.id, end)
    else:
        _takes_first("runtime_app_balance", a.id, z.id, take)
        end()
    world.finish(*asked.values())


def _locked(task: Task) -> Locked:
    now = rows.run("SELECT runtime_now()")[0][0]
    return Locked(task.id, task.tenant_id, task.revision, task.status, 0, 1, b"", False, now, {})  # type: ignore[arg-type]


def test_operations_are_handed_over_in_the_order_of_their_payments(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each insert may wait for another worker's of the same payment; in one order, nobody waits in a circle."""
    seen: list[list[str]] = []
    insert = rows.insert

    def watch(table: str, columns: Any, values: Any, tail: str = "") -> Any:
        if table == "runtime_app_operation":
            seen.append([row[7] for row in values])
        return insert(table, columns, values, tail)

    monkeypatch.setattr(rows, "insert", watch)
    task = world.ask(world.order(), 1000)
    row = _locked(task)

    def part(payment: str, number: int) -> SubmitOperation:
        return SubmitOperation(
            id=UUID(int=number), effect="refund", ordinal=number, account="stripe", order_ref="o", payment_ref=payment,
            amount_minor=1, currency="USD", exponent=2, idempotency_key=str(number), request_body=b"",
            request_sha256="", api_version="", authority={}, fingerprint="", send_within=1.0,
        )

    with transaction.atomic():
        SubmitOperation.admit([(row, part("pi_b", 1)), (row, part("pi_c", 2)), (row, part("pi_a", 3))])
        transaction.set_rollback(True)
    assert seen == [["pi_a", "pi_b", "pi_c"]]
    world.finish(task)


def test_a_lost_connection_of_the_senders_locks_ends_no_run(world: World) -> None:
    """Rule 6: what was in hand is recorded, and the lock is taken again on a new connection."""
    first = world.ask(world.order(), 1000)
    world.finish(first)
    killed = rows.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'countersign sender locks'"
        " AND datname = current_database()"
    )
    assert killed
    orders = [world.order(), world.order()]
    wanted = [world.ask(order, 1000) for order in orders]
    world.finish(*wanted)
    assert [t.status for t in wanted] == ["completed", "completed"]
    assert all(len(world.effects(order)) == 1 for order in orders)


def test_a_lock_is_not_left_behind_when_the_time_limit_strikes_while_it_is_taken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C22: a lock that nobody remembers would keep every other worker from ever believing an absence."""
    operation, locks, other = uuid4(), SenderLocks(), SenderLocks()
    open_ = SenderLocks._open

    class Struck:
        def __init__(self, real: Any) -> None:
            self.real = real

        def execute(self, *args: Any) -> Any:
            self.real.execute(*args)
            raise JobTimeoutException("too long")

    try:
        monkeypatch.setattr(SenderLocks, "_open", lambda self: Struck(open_(self)))
        with pytest.raises(JobTimeoutException):
            locks.take(operation)
        monkeypatch.undo()
        wait_until(lambda: other.take(operation))
    finally:
        locks.close()
        other.close()


def test_a_hand_whose_lock_was_lost_does_not_give_back_the_lock_of_the_next_hand(world: World) -> None:
    """Rule 1: the connection broke, the lease ran out, and the same process has the task in another hand now."""
    world.ask(world.order(), 1000)
    [first] = world.drain._claim(5)
    operation, other = uuid4(), SenderLocks()
    try:
        assert world.drain._take(first, operation)
        rows.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'countersign sender locks'"
            " AND datname = current_database()"
        )
        wait_until(lambda: not world.drain._sender_holds(first, operation))
        second = replace(first, lock=None)
        assert world.drain._take(second, operation)
        assert not world.drain._sender_holds(first, operation) and world.drain._sender_holds(second, operation)
        world.drain._give_back(first)
        assert world.drain._sender_holds(second, operation) and not other.take(operation)
        world.drain._give_back(second)
        assert other.take(operation)
    finally:
        world.drain.hands.clear()
        other.close()
