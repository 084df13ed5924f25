"""The floor is an honest one: it leaves what the product leaves."""

from __future__ import annotations

import json
from typing import Any

import psycopg
from django.db import connection

from runtime_app import chronicle, invariants, rows
from runtime_app.drain import Drain
from runtime_app.models import Event
from tests.bench import floor, load
from tests.bench.rig import FACTS, empty
from tests.world import World

# Ids, instants and what is made from them differ between two runs of the same program.
OWN = {
    "id", "task_id", "tenant_id", "request_key", "status_since", "due_at", "created_at", "started_at", "ended_at", "at",
    "active_ms", "txid", "chain", "event_head",
}
TASKS = 7


def left() -> dict[str, list[str]]:
    """Every row of every table that a task may write, without what is a run's own, in order."""
    return {
        table: sorted(
            json.dumps({name: value for name, value in json.loads(row[0]).items() if name not in OWN}, sort_keys=True)
            for row in rows.run(f"SELECT to_jsonb(t)::text FROM {table} t")
        )
        for table in FACTS
    }


def updates(of: psycopg.Connection[Any] | None = None) -> int:
    """How many task rows were updated so far, by PostgreSQL's own count."""
    for each in (of, connection.connection):
        if each is not None:
            each.execute("SELECT pg_stat_force_next_flush()")
    found = rows.run("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'runtime_app_task'")
    return int(found[0][0])


def by_the_product(world: World) -> int:
    load.noop3(world.amber.id, TASKS)
    before = updates()
    drain = Drain(lane="default", worker="bench", ports=world.ports(), batch=floor.BATCH, effects=1)
    try:
        assert not drain.run(30.0, lambda: None)
    finally:
        drain.close()
    return updates() - before


def by_the_floor(world: World) -> int:
    load.noop3(world.amber.id, TASKS)
    before = updates()
    params = connection.get_connection_params()
    where = {name: params[name] for name in ("dbname", "user", "password", "host", "port") if params.get(name)}
    with psycopg.connect(**where, autocommit=True) as own:
        assert floor.drain(own, "bench") == TASKS
        return updates(own) - before


def test_the_floor_leaves_the_rows_that_the_product_leaves_and_updates_as_often(world: World) -> None:
    """design/speed.md, w1_vs_floor: the floor is hand-written SQL of our own rows."""
    updated = by_the_product(world)
    ours = left()
    assert len(ours["runtime_app_event"]) == 6 * TASKS
    empty(connection.connection)
    assert by_the_floor(world) == updated
    assert left() == ours


def test_the_floor_writes_the_same_hash_chain(world: World) -> None:
    """design/speed.md, w1_vs_floor: it pays for the chain as we do."""
    by_the_floor(world)
    heads: dict[object, bytes] = {}
    for event in Event.objects.order_by("task_id", "seq"):
        heads[event.task_id] = chronicle.link(
            heads.get(event.task_id, b""), task_id=event.task_id, seq=event.seq, type=event.type, actor=event.actor,
            at=event.at, payload_sha256=bytes(event.payload_sha256),
        )
        assert bytes(event.chain) == heads[event.task_id], f"event {event.seq}"
    assert len(heads) == TASKS
    assert not invariants.check()
