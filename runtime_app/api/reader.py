"""Reading events for streams: asynchronous, on a small pool of its own, one query for many readers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from django.db import connections
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

PAGE = 500  # events a query
_NOTHING = hashlib.sha256(b"").digest()
_EVENT = "e.txid::text, e.task_id, e.seq, e.type, e.actor, e.at, e.payload_sha256, p.data"
_PAYLOAD = "LEFT JOIN runtime_app_eventpayload p ON p.task_id = e.task_id AND p.seq = e.seq"
_OF_TENANT = f"""
SELECT {_EVENT} FROM runtime_app_event e {_PAYLOAD}
WHERE e.tenant_id = %s AND (e.txid, e.task_id, e.seq) > (%s::xid8, %s, %s)
  AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.txid, e.task_id, e.seq LIMIT {PAGE}
"""
_OF_TASKS = f"""
SELECT {_EVENT} FROM unnest(%s::uuid[], %s::int[]) AS w(task_id, seq)
JOIN runtime_app_event e ON e.task_id = w.task_id AND e.seq > w.seq {_PAYLOAD}
WHERE e.tenant_id = %s ORDER BY e.task_id, e.seq LIMIT {PAGE}
"""
_UNSETTLED = """
SELECT EXISTS (
    SELECT 1 FROM runtime_app_event WHERE tenant_id = %s AND txid >= pg_snapshot_xmin(pg_current_snapshot())
)
"""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a tenant's events. Transactions are ordered by their ids, which is not the order of their commits."""

    txid: int
    task_id: UUID
    seq: int


START = Place(0, UUID(int=0), 0)


@dataclass(frozen=True, slots=True)
class Told:
    """An event as streams tell it. `data` is None once retention has removed it."""

    place: Place
    type: str
    actor: str
    at: datetime
    data: dict[str, Any] | None


class Reader:
    """Opened once a process. Every method may raise psycopg's errors."""

    def __init__(self) -> None:
        self._pool = AsyncConnectionPool(
            kwargs=parameters() | {"autocommit": True}, min_size=1, max_size=4, timeout=3, reconnect_timeout=5,
            name="streams", open=False,
        )

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close()

    async def of_tenant(self, tenant_id: UUID, after: Place) -> list[Told]:
        """The next page of the tenant's events, only such that nothing can appear before them any more.

        An event of a transaction that is not older than every open one is left for later: a lower id may still commit.
        """
        found = await self._rows(_OF_TENANT, [tenant_id, str(after.txid), after.task_id, after.seq])
        return [_told(row) for row in found]

    async def is_unsettled(self, tenant_id: UUID) -> bool:
        """Whether there are committed events that `of_tenant` does not show yet. Nobody rings when they come of age."""
        return bool((await self._rows(_UNSETTLED, [tenant_id]))[0][0])

    async def of_tasks(self, tenant_id: UUID, after: Mapping[UUID, int]) -> list[Told]:
        """The next events of these tasks, each after its own number; a task's events commit in their order."""
        return [_told(row) for row in await self._rows(_OF_TASKS, [list(after), list(after.values()), tenant_id])]

    async def now(self) -> Place:
        """The place behind which everything lies that may still be told."""
        rows = await self._rows("SELECT pg_snapshot_xmin(pg_current_snapshot())::text", [])
        return Place(int(rows[0][0]), START.task_id, 0)

    async def _rows(self, query: str, params: list[Any]) -> list[TupleRow]:
        try:
            return await self._asked(query, params)
        except psycopg.OperationalError:
            await self._pool.drain()  # PostgreSQL was away, so those that lie there are as dead as this one
            return await self._asked(query, params)

    async def _asked(self, query: str, params: list[Any]) -> list[TupleRow]:
        async with self._pool.connection() as connection:
            return await (await connection.execute(query.encode(), params, prepare=True)).fetchall()


def _told(row: TupleRow) -> Told:
    txid, task_id, seq, type_, actor, at, digest, payload = row
    data = payload if payload is not None or digest != _NOTHING else {}
    return Told(Place(int(txid), task_id, seq), type_, actor, at.astimezone(UTC), data)


def parameters() -> dict[str, Any]:
    """How Django connects, without what only Django's own cursors understand."""
    told = connections["default"].get_connection_params()
    return {n: v for n, v in told.items() if n not in {"cursor_factory", "context", "prepare_threshold"}}


async def listening() -> psycopg.AsyncConnection[TupleRow]:
    return await psycopg.AsyncConnection.connect(**parameters(), autocommit=True)
