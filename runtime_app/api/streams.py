"""Server-sent events: what happened and what happens, resumed exactly where the client was.

`of_task` and `of_tenant` are for every door that streams; each asks for the right before it answers.
"""

from __future__ import annotations

import json
import logging
import struct
import time
from collections.abc import AsyncIterator
from uuid import UUID

import psycopg
from asgiref.sync import sync_to_async
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection
from django.http import StreamingHttpResponse

from runtime_app import access
from runtime_app.access import Principal
from runtime_app.api import cursors
from runtime_app.api.hub import Watch, hub
from runtime_app.api.problems import CursorGone
from runtime_app.api.reader import PAGE, START, Place, Reader, Told
from runtime_app.errors import FieldErrors, Unavailable
from runtime_app.models import Installation, ServiceAccount

log = logging.getLogger(__name__)
HEARTBEAT = 15.0  # seconds; shorter than what proxies wait
LONGEST = 900.0  # seconds; then the client comes again and shows its sign-in again
RETRY = 2000  # milliseconds after which a browser comes again
BEGINNING = "0"  # as `after` of a tenant's stream: everything that ever happened
_PLACE = struct.Struct(">IQ16sI")  # restore epoch, transaction id, task, number
_COMMENT = b": nothing new\n\n"
_END = b'event: end\ndata: {"code": "not_allowed"}\n\n'


async def of_task(
    principal: Principal, task_id: object, *, after: str | None, field: str = "after", session_key: str | None = None
) -> StreamingHttpResponse:
    """The task's events from number `after` + 1 on, and then as they happen; the event's id is its number.

    Raises NotFound, or FieldErrors naming `field`.
    """
    if after is not None and not (after.isascii() and after.isdigit() and len(after) < 10):
        raise FieldErrors({field: "Use the number of an event of this task."})
    tenant_id, id, seq = await sync_to_async(_task)(principal, task_id)
    watch = Watch(principal, tenant_id, task_id=id, session_key=session_key)
    return _response(_frames(watch, _TaskPlace(watch, int(after or 0)), known=seq))


async def of_tenant(account: ServiceAccount, *, after: str | None, field: str = "after") -> StreamingHttpResponse:
    """Every event of the account's tenant after the cursor, or from now on without one; the event's id is its cursor.

    Raises FieldErrors naming `field`, or CursorGone for a cursor from before a restore.
    """
    epoch = await sync_to_async(_epoch)()
    place = _place(after, account.tenant_id, epoch, field) if after is not None else None
    watch = Watch(account, account.tenant_id)
    return _response(_frames(watch, _TenantPlace(watch, place, epoch)))


def _task(principal: Principal, task_id: object) -> tuple[UUID, UUID, int]:
    try:
        task = access.task(principal, task_id)
        return task.tenant_id, task.id, task.event_seq
    finally:
        connection.close()  # a stream lives long, and must not keep it


def _epoch() -> int:
    try:
        return Installation.objects.values_list("restore_epoch", flat=True).get(id=1)
    finally:
        connection.close()


def _response(frames: AsyncIterator[bytes]) -> StreamingHttpResponse:
    response = StreamingHttpResponse(frames, content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


class _TaskPlace:
    """How far the client of a task's stream has come: a number."""

    def __init__(self, watch: Watch, seq: int) -> None:
        assert watch.task_id is not None
        self._tenant_id, self._task_id, self._seq = watch.tenant_id, watch.task_id, seq

    async def settle(self, reader: Reader) -> None:
        """Nothing to find out: without a number it starts at the first event."""

    async def page(self, reader: Reader) -> list[Told]:
        return await reader.of_tasks(self._tenant_id, {self._task_id: self._seq})

    def is_new(self, told: Told) -> bool:
        return told.place.seq > self._seq

    def go_to(self, told: Told) -> None:
        self._seq = told.place.seq

    @property
    def id(self) -> str:
        return str(self._seq)


class _TenantPlace:
    """How far the client of a tenant's stream has come; None until it is known where now is."""

    def __init__(self, watch: Watch, place: Place | None, epoch: int) -> None:
        self._tenant_id, self._place, self._epoch = watch.tenant_id, place, epoch

    async def settle(self, reader: Reader) -> None:
        if self._place is None:
            self._place = await reader.now()

    async def page(self, reader: Reader) -> list[Told]:
        assert self._place is not None
        return await reader.of_tenant(self._tenant_id, self._place)

    def is_new(self, told: Told) -> bool:
        return self._place is None or told.place > self._place

    def go_to(self, told: Told) -> None:
        self._place = told.place

    @property
    def id(self) -> str:
        return _cursor(self._place or START, self._tenant_id, self._epoch)


async def _frames(watch: Watch, place: _TaskPlace | _TenantPlace, *, known: int = 0) -> AsyncIterator[bytes]:
    """The stream. It ends when rights end, when it is old, or when the database is away: the client comes again."""
    until = time.monotonic() + LONGEST
    yield f"retry: {RETRY}\n\n".encode()
    try:
        async with hub().watching(watch, seq=known):
            reader = hub().reader
            await place.settle(reader)
            yield f"id: {place.id}\n\n".encode()
            while time.monotonic() < until:
                async for frame in _from_database(watch, place, reader):
                    yield frame
                async for frame in _as_it_happens(watch, place, until):
                    yield frame
                if watch.over:
                    yield _END
                    return
    except (psycopg.Error, Unavailable) as error:
        log.info("a stream ended early: %s", error)


async def _from_database(watch: Watch, place: _TaskPlace | _TenantPlace, reader: Reader) -> AsyncIterator[bytes]:
    watch.catch_up()
    more = True
    while more and not watch.over:
        page = await place.page(reader)
        more = len(page) == PAGE
        for told in page:
            place.go_to(told)
            yield _frame(told, place.id)


async def _as_it_happens(watch: Watch, place: _TaskPlace | _TenantPlace, until: float) -> AsyncIterator[bytes]:
    """What the hub hands out, until the client cannot follow or the stream is over."""
    while not (watch.over or watch.behind) and time.monotonic() < until:
        for told in watch.take():
            if place.is_new(told):
                place.go_to(told)
                yield _frame(told, place.id)
        if not (watch.over or watch.behind) and not await watch.something(HEARTBEAT):
            yield _COMMENT


def _frame(told: Told, id: str) -> bytes:
    said = {
        "task_id": told.place.task_id, "seq": told.place.seq, "type": told.type, "actor": told.actor, "at": told.at,
        "data": told.data,
    }
    return f"id: {id}\ndata: {json.dumps(said, cls=DjangoJSONEncoder)}\n\n".encode()


def _cursor(place: Place, tenant_id: UUID, epoch: int) -> str:
    return cursors.seal(_PLACE.pack(epoch, place.txid, place.task_id.bytes, place.seq), purpose=f"events:{tenant_id}")


def _place(cursor: str, tenant_id: UUID, epoch: int, field: str) -> Place:
    if cursor == BEGINNING:
        return START
    opened = cursors.unseal(cursor, purpose=f"events:{tenant_id}", field=field)
    was, txid, task_id, seq = _PLACE.unpack(opened)
    if was != epoch:  # transaction ids began anew, so its place means nothing any more
        raise CursorGone
    return Place(txid, UUID(bytes=task_id), seq)
