"""Where cells happen: a database, a sandbox and a nursery each, so that two of them work beside each other."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from runtime_app.trial.cluster import Cluster
from tests import worker_process
from tests.reliability.nursery import ROOT, Nursery
from tests.sandbox_process import SandboxProcess, running_sandbox
from tests.worker_process import wait_for

# Real waits are only those for a provider that does not answer; everything else is waited for by moving the clock.
TIMING: dict[str, float] = {
    "lease": 30.0, "connect_timeout": 0.5, "read_timeout": 0.5, "send_margin": 0.5, "drain_budget": 5.0,
    "absent_age": 20.0, "absent_count": 2, "max_in_flight": 100.0,
}
# For real workers on the real clock.
QUICK: dict[str, Any] = {
    "lease": 6.0, "connect_timeout": 0.5, "read_timeout": 2.0, "send_margin": 0.3, "clock_poll": 0.5,
    "drain_budget": 3.0, "retry_first": 0.2, "retry_most": 1.0, "reconcile_after": [0.3, 0.5, 1],
    "reconcile_every": 1.0, "absent_age": 1.0, "absent_count": 2, "max_in_flight": 3.0, "look_rate": 200.0,
    "look_burst": 200.0, "closed_first": 0.2, "closed_most": 1.0,
}
T = TypeVar("T")


@dataclass
class Room:
    """One database with its processes, used by one thread at a time."""

    folder: Path
    database_url: str
    redis_url: str
    sandbox: SandboxProcess
    nursery: Nursery
    db: psycopg.Connection[Any]
    key: str  # of an application that may ask in Amber
    environment: Mapping[str, str]  # for further processes of the product
    _numbers: Iterator[int] = field(default_factory=count)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _door: str = ""  # where the provider's notices come in, once somebody wanted them
    _told: bool = False

    def new_name(self) -> str:
        return f"{self.folder.name}-{next(self._numbers)}"

    def check(self) -> None:
        """Hold every invariant against all that happened in this room."""
        broken = self.nursery.do("check", control_url=self.sandbox.control_url)
        assert not broken, broken

    def be_told(self, told: bool) -> None:
        """Have the provider's notices delivered from now on, to a real web process, or no longer."""
        if told and not self._door:
            web, url = self._open.enter_context(worker_process.web(self.environment, self.folder / "web.log"))
            web.start()
            wait_for(lambda: worker_process.answers(url), 60, web)
            account = self.ask("SELECT id FROM runtime_app_account WHERE ref = 'stripe'")[0][0]
            self._door = f"{url}/hooks/stripe/{account}"
        if told != self._told:
            to = {"notice_url": self._door, "notice_secret": "whsec_amber"} if told else {}
            self.sandbox.account("amber", "sk_test_room", **to)
            self._told = told

    def close(self) -> None:
        self._open.close()
        self.nursery.close()
        self.db.close()

    def move_clock(self, seconds: float) -> None:
        self.db.execute("UPDATE runtime_clock SET advanced = advanced + make_interval(secs => %s)", [seconds])

    def meet_clocks(self) -> None:
        """Bring the sandbox's clock to where the product's is, if it is behind."""
        ahead = float(self.ask("SELECT extract(epoch FROM advanced)::float8 FROM runtime_clock")[0][0])
        if (behind := ahead - self.sandbox.advance(0)["advanced_s"]) > 0:
            self.sandbox.advance(behind)

    def ask(self, query: str, *params: object) -> list[tuple[Any, ...]]:
        """The rows; asked over a new connection when the old one was lost with its server."""
        try:
            return self.db.execute(query.encode(), params).fetchall()
        except psycopg.OperationalError:
            self.db.close()
            self.db = psycopg.connect(self.database_url, autocommit=True)
            return self.db.execute(query.encode(), params).fetchall()


def environment(database_url: str, redis_url: str, sandbox: SandboxProcess, **timing: object) -> dict[str, str]:
    """What a process of the product needs to work here."""
    return {
        "DATABASE_URL": database_url, "REDIS_URL": redis_url, "SANDBOX_URL": sandbox.url,
        "COUNTERSIGN_ENVIRONMENT": "test", "COUNTERSIGN_TIMING": json.dumps(TIMING | timing),
        "DB_IDLE_IN_TRANSACTION_MS": "1000", "LOG_LEVEL": "WARNING",
    }


def new_database(cluster: Cluster, name: str) -> str:
    """A database with the product's tables; the first one is made by the migrations, the others are its copies."""
    template = "countersign_empty"
    with psycopg.connect(cluster.postgres.url("postgres"), autocommit=True) as connection:
        known = {row[0] for row in connection.execute("SELECT datname FROM pg_database").fetchall()}
        if template not in known:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(template)))
            url = cluster.postgres.url(template)
            subprocess.run(
                [sys.executable, "manage.py", "migrate", "--verbosity", "0"], check=True, cwd=ROOT, timeout=120,
                env={**os.environ, "DATABASE_URL": url, "REDIS_URL": cluster.redis_url},
            )
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
    return cluster.postgres.url(name)


@contextlib.contextmanager
def running_room(
    cluster: Cluster, folder: Path, number: int, *, threshold: int = 0, one_clock: bool = False, **timing: object
) -> Iterator[Room]:
    """A room on this cluster, founded; its processes end with the context. `one_clock`: who moves the sandbox's clock
    moves the product's with it."""
    name = f"{folder.name}-{number}"
    place = folder / name
    place.mkdir(parents=True)
    database_url = new_database(cluster, name.replace("-", "_"))
    redis_url = cluster.redis_url.replace("db=0", f"db={number}")
    with running_sandbox(place, {"COUNTERSIGN_CLOCK_DATABASE_URL": database_url} if one_clock else {}) as sandbox:
        around = environment(database_url, redis_url, sandbox, **timing) | {"NURSERY_FOLDER": str(place)}
        nursery = Nursery(place, around)
        db = psycopg.connect(database_url, autocommit=True)
        room = Room(place, database_url, redis_url, sandbox, nursery, db, "", around)
        try:
            room.key = nursery.do("found", threshold=threshold)
            yield room
        finally:
            room.close()


class Rooms:
    """Rooms that share out a list of cells between them."""

    def __init__(self, rooms: list[Room]) -> None:
        self.all = rooms
        self._free: SimpleQueue[Room] = SimpleQueue()
        for room in rooms:
            self._free.put(room)
        self._threads = ThreadPoolExecutor(len(rooms))

    def each(self, run: Any, cells: list[T]) -> list[Any]:
        """`run(room, cell)` for every cell, as many beside each other as there are rooms."""

        def in_a_room(cell: T) -> Any:
            room = self._free.get()
            try:
                return run(room, cell)
            finally:
                self._free.put(room)

        return list(self._threads.map(in_a_room, cells))

    def close(self) -> None:
        self._threads.shutdown()
