"""The floors are honest ones: they leave what the product leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection

from runtime_app import access, chronicle, invariants, rows, tasks
from runtime_app.drain import Drain
from runtime_app.members import issue_key
from runtime_app.models import Event
from tests.bench import floor, floor_births, load
from tests.bench.floor_births import Asker, Wish
from tests.bench.floor_refunds import Worker
from tests.bench.rig import FACTS, empty
from tests.bench.submits import order
from tests.world import World

# Ids, instants and what is made from them differ between two runs of the same program.
OWN = {
    "id", "task_id", "tenant_id", "request_key", "status_since", "due_at", "created_at", "started_at", "ended_at", "at",
    "active_ms", "txid", "chain", "event_head",
}
TASKS = 7


@pytest.fixture
def own(world: World) -> Iterator[floor.Connection]:
    """A connection of the floor's to the test database."""
    params = connection.get_connection_params()
    where = {name: params[name] for name in ("dbname", "user", "password", "host", "port") if params.get(name)}
    with psycopg.connect(**where, autocommit=True) as opened:
        yield opened


def left(without: set[str] = OWN, *, shape: bool = False) -> dict[str, list[str]]:
    """Every row of every table that a task may write, in order, or only which of its columns are filled."""
    return {
        table: sorted(
            json.dumps({
                name: value is None if shape else value
                for name, value in json.loads(row[0]).items() if name not in without
            }, sort_keys=True)
            for row in rows.run(f"SELECT to_jsonb(t)::text FROM {table} t")
        )
        for table in FACTS
    }


def updates(of: floor.Connection | None = None) -> int:
    """How many task rows were updated so far, by PostgreSQL's own count."""
    for each in (of, connection.connection):
        if each is not None:
            each.execute("SELECT pg_stat_force_next_flush()")
    return int(rows.run("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'runtime_app_task'")[0][0])


def drained(world: World) -> None:
    drain = Drain(lane="default", worker="bench", ports=world.ports(), batch=floor.BATCH, effects=4)
    try:
        assert not drain.run(30.0, lambda: None)
    finally:
        drain.close()


def test_the_floor_leaves_the_rows_that_the_product_leaves_and_updates_as_often(
    world: World, own: floor.Connection
) -> None:
    """design/speed.md, w1_vs_floor: the floor is hand-written SQL of our own rows."""
    load.noop3(world.amber.id, TASKS)
    before = updates()
    drained(world)
    by_the_product, ours = updates() - before, left()
    assert len(ours["runtime_app_event"]) == 6 * TASKS

    empty(connection.connection)
    load.noop3(world.amber.id, TASKS)
    before = updates(own)
    assert floor.drain(own, "bench") == TASKS
    assert updates(own) - before == by_the_product
    assert left() == ours


def test_the_floor_writes_the_same_hash_chain(world: World, own: floor.Connection) -> None:
    """design/speed.md, w1_vs_floor: it pays for the chain as we do, from the first event on."""
    asker = Asker(str(world.amber.id), None, "bench")
    floor_births.submit(own, asker, [Wish("noop3", uuid4().hex) for _ in range(TASKS)])
    floor.drain(own, "bench")
    heads: dict[object, bytes] = {}
    for event in Event.objects.order_by("task_id", "seq"):
        heads[event.task_id] = chronicle.link(
            heads.get(event.task_id, b""), task_id=event.task_id, seq=event.seq, type=event.type, actor=event.actor,
            at=event.at, payload_sha256=bytes(event.payload_sha256),
        )
        assert bytes(event.chain) == heads[event.task_id], f"event {event.seq}"
    assert len(heads) == TASKS
    assert not invariants.check()


def test_a_submit_by_hand_leaves_the_rows_that_the_service_call_leaves(world: World, own: floor.Connection) -> None:
    """design/speed.md, submit: one hand-written insert of the same rows."""
    actor, ref = access.actor(world.account), order()
    without = OWN | {"request_sha256"}  # a digest of the checked request; the floor checks nothing
    tasks.create(
        world.account, world.amber, tasks.Request("refund", ref, amount_minor=1000, currency="USD"), request_key="k-1"
    )
    ours = left(without)
    empty(connection.connection)
    floor_births.submit(
        own, Asker(str(world.amber.id), str(world.account.id), actor), [Wish("refund", "k-1", ref, 1000, "USD")]
    )
    assert left(without) == ours


def test_a_refund_by_hand_leaves_rows_of_the_same_shape_as_the_product_leaves(
    world: World, own: floor.Connection
) -> None:
    """design/speed.md, refund_vs_floor: the same calls and the same rows."""
    tenant = load.tenant()
    load.account(tenant, world.sandbox.url)
    account, _ = issue_key(tenant, "bench")

    def made() -> Sequence[str]:
        return [world.order(10_000, tenant=tenant) for _ in range(3)]

    def refunded(by: Callable[[], Any]) -> tuple[dict[str, list[str]], list[tuple[Any, ...]], list[str]]:
        orders = made()
        load.refunds(account, tenant, orders)
        by()
        assert all(len(world.effects(ref)) == 1 for ref in orders)
        calls = sorted(f"{r['method']} {r['path'].split('/')[1]}" for ref in orders for r in asked(world, ref))
        said = rows.run(
            "SELECT e.seq, e.type, (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(p.data) AS k)"
            " FROM runtime_app_event e LEFT JOIN runtime_app_eventpayload p USING (task_id, seq) ORDER BY 1, 2, 3"
        )
        money = rows.run("SELECT captured_minor, reserved_minor, refunded_minor FROM runtime_app_balance")
        return left(set(), shape=True), [*said, *money], calls

    ours = refunded(lambda: drained(world))
    assert len(ours[2]) == 3 * 4
    empty(connection.connection)
    worker = Worker(own, world.sandbox.url, "bench")
    try:
        assert refunded(worker.drain) == ours
    finally:
        worker.close()


def asked(world: World, ref: str) -> list[dict[str, Any]]:
    """What was asked of the order system and the provider about this order and its payment."""
    return [r for r in world.sandbox.requests() if ref in json.dumps(r)]
