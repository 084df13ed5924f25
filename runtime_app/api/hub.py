"""One hub a process for all its event streams: one LISTEN, one fetch a tenant, handed to every client that watches.

A client is a `Watch`. It joins first and reads from the database up to now, and then takes what the hub hands out;
what it has already seen it knows by its place. A client that takes too slowly is handed nothing more and reads from
the database again, so that memory is bounded and nothing is missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from asgiref.sync import sync_to_async
from django.db import DatabaseError

from runtime_app.access import Principal
from runtime_app.api import rights
from runtime_app.api.reader import PAGE, Place, Reader, Told, listening
from runtime_app.chronicle import CHANNEL
from runtime_app.errors import Unavailable

log = logging.getLogger(__name__)
WAITING_MOST = 1000  # events kept for a client that does not take them
STREAMS_MOST = 1000  # clients of one process
RIGHTS_EVERY = 3.0  # seconds between two looks at whether clients may still watch
PATIENCE = 10.0  # seconds of silence after which the listening connection is tested and everything looked at
SETTLING = 0.05  # seconds until committed events are looked at again that an open transaction still holds back
TOGETHER = 0.01  # seconds in which what else commits is fetched together
FAILED = 0.5  # seconds until a database that did not answer is asked again


class Watch:
    """One client: what it may see, and what has come for it."""

    def __init__(
        self, principal: Principal, tenant_id: UUID, *, task_id: UUID | None = None, session_key: str | None = None
    ) -> None:
        self.principal, self.tenant_id, self.task_id, self.session_key = principal, tenant_id, task_id, session_key
        self.behind = self.over = False
        self._waiting: deque[Told] = deque()
        self._rung = asyncio.Event()

    def offer(self, told: Sequence[Told]) -> None:
        if len(self._waiting) + len(told) > WAITING_MOST:
            self._waiting.clear()
            self.behind = True
        if not self.behind:
            self._waiting.extend(told)
        self._rung.set()

    def end(self) -> None:
        """It may not watch any more."""
        self.over = True
        self._rung.set()

    def take(self) -> Iterable[Told]:
        while self._waiting:
            yield self._waiting.popleft()

    def catch_up(self) -> None:
        """From now on keep what comes; what came before is read from the database."""
        self._waiting.clear()
        self.behind = False

    async def something(self, seconds: float) -> bool:
        """Wait until something has come or changed; False when nothing did in this time."""
        try:
            await asyncio.wait_for(self._rung.wait(), seconds)
        except TimeoutError:
            return False
        self._rung.clear()
        return True


class _Channel:
    """What one tenant's clients watch, and how far it was handed out."""

    def __init__(self, tenant_id: UUID, reader: Reader) -> None:
        self.tenant_id, self._reader = tenant_id, reader
        self.watches: set[Watch] = set()
        self.dirty = asyncio.Event()
        self.place: Place | None = None  # of the whole tenant; None while nobody watches it
        self.seqs: dict[UUID, int] = {}  # of single tasks
        self.task: asyncio.Task[None] | None = None

    async def join(self, watch: Watch, seq: int) -> None:
        self.watches.add(watch)
        if watch.task_id is not None:
            self.seqs.setdefault(watch.task_id, seq)
        elif self.place is None:
            place = await self._reader.now()
            self.place = self.place or place
        self.dirty.set()

    def leave(self, watch: Watch) -> None:
        self.watches.discard(watch)
        if watch.task_id is not None and all(w.task_id != watch.task_id for w in self.watches):
            self.seqs.pop(watch.task_id, None)
        if all(w.task_id is not None for w in self.watches):
            self.place = None

    async def run(self) -> None:
        """Hand out what is new whenever it was said that there is something."""
        while True:
            await self.dirty.wait()
            self.dirty.clear()
            try:
                waits = [await self._tasks(), await self._tenant()]
            except psycopg.Error as error:
                log.warning("events cannot be read, and are tried again: %s", error)
                waits = [FAILED]
            again = [seconds for seconds in waits if seconds is not None]
            if again:
                self.dirty.set()
            await asyncio.sleep(min(again, default=TOGETHER))

    async def _tasks(self) -> float | None:
        """Hand out events of watched tasks; returns in how many seconds to look again, None when told to."""
        if not self.seqs:
            return None
        told = await self._reader.of_tasks(self.tenant_id, self.seqs)
        by_task: dict[UUID, list[Told]] = defaultdict(list)
        for each in told:
            by_task[each.place.task_id].append(each)
        for task_id, events in by_task.items():
            if task_id in self.seqs:
                self.seqs[task_id] = events[-1].place.seq
        for watch in self.watches:
            if watch.task_id in by_task:
                watch.offer(by_task[watch.task_id])
        return 0.0 if len(told) == PAGE else None

    async def _tenant(self) -> float | None:
        """The same for the tenant as a whole."""
        if self.place is None:
            return None
        # Asked before the fetch: what is unsettled now may be shown by it, and then the next look finds nothing.
        unsettled = await self._reader.is_unsettled(self.tenant_id)
        told = await self._reader.of_tenant(self.tenant_id, self.place)
        if told and self.place is not None:
            self.place = told[-1].place
            for watch in self.watches:
                if watch.task_id is None:
                    watch.offer(told)
        if len(told) == PAGE:
            return 0.0
        return SETTLING if unsettled else None


class Hub:
    def __init__(self) -> None:
        self.reader = Reader()
        self._channels: dict[UUID, _Channel] = {}
        self._running: list[asyncio.Task[Any]] = []

    @property
    def watches(self) -> list[Watch]:
        return [watch for channel in self._channels.values() for watch in channel.watches]

    @asynccontextmanager
    async def watching(self, watch: Watch, *, seq: int = 0) -> AsyncIterator[None]:
        """The client takes part from here on. `seq` is how many events its task has at least."""
        if len(self.watches) >= STREAMS_MOST:
            raise Unavailable("Too many streams are open here; try again in a moment.")
        if not self._running:
            self._running = [asyncio.create_task(self._listen()), asyncio.create_task(self._look_at_rights())]
            await self.reader.open()
        channel = self._channels.get(watch.tenant_id)
        if channel is None:
            channel = self._channels[watch.tenant_id] = _Channel(watch.tenant_id, self.reader)
            channel.task = asyncio.create_task(channel.run())
        try:
            await channel.join(watch, seq)
            yield
        finally:
            channel.leave(watch)
            if not channel.watches and channel.task is not None:
                channel.task.cancel()
                self._channels.pop(watch.tenant_id, None)

    async def close(self) -> None:
        """Stop listening and give the connections back, for a loop that ends before its process does."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()
        await self.reader.close()

    async def _listen(self) -> None:
        while True:
            try:
                async with await listening() as connection:
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    while True:
                        self._all_dirty()  # nothing was heard before this
                        async for notice in connection.notifies(timeout=PATIENCE):
                            self._dirty(notice.payload)
                        await connection.execute(b"SELECT 1")
            except (psycopg.Error, OSError) as error:
                log.warning("not listening for events, and trying again: %s", error)
                await asyncio.sleep(1.0)

    def _dirty(self, tenant_id: str) -> None:
        channel = self._channels.get(UUID(tenant_id))
        if channel is not None:
            channel.dirty.set()

    def _all_dirty(self) -> None:
        for channel in self._channels.values():
            channel.dirty.set()

    async def _look_at_rights(self) -> None:
        while True:
            await asyncio.sleep(RIGHTS_EVERY)
            watches = self.watches
            try:
                allowed = await sync_to_async(rights.still_allowed, thread_sensitive=False)(watches)
            except DatabaseError:
                continue  # it is asked again soon, and nothing can be read meanwhile either
            for watch in watches:
                if watch not in allowed:
                    watch.end()


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _hubs.get(loop)
    if found is None:
        found = _hubs[loop] = Hub()
    return found
