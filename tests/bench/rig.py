"""What every measurement stands on: one durable PostgreSQL, one Redis, a sandbox, and an account of what was spent."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

from runtime_app.trial.cluster import Cluster, running_cluster

PROJECT = Path(__file__).resolve().parents[2]
# The server's defaults but for room: no checkpoint falls into one side's time and not into the other's.
SERVER = {
    "shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "1h", "fsync": "on",
    "synchronous_commit": "on", "track_commit_timestamp": "on",
}
FACTS = (
    "runtime_app_intent", "runtime_app_hold", "runtime_app_balance", "runtime_app_evidence", "runtime_app_call",
    "runtime_app_operation", "runtime_app_step", "runtime_app_attempt", "runtime_app_eventpayload", "runtime_app_event",
    "runtime_app_task",
)


Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Spent:
    """What something cost: seconds of wall time and of CPU, bytes of write-ahead log, and for how many tasks."""

    tasks: int
    seconds: float
    worker_cpu: float
    database_cpu: float
    wal: int

    @property
    def rate(self) -> float:
        return self.tasks / self.seconds

    def __str__(self) -> str:
        worker, database = self.worker_cpu / self.tasks * 1000, self.database_cpu / self.tasks * 1000
        return (
            f"{self.rate:.0f} tasks/s; a task costs {worker:.2f} ms of worker CPU, {database:.2f} ms of database CPU,"
            f" {self.wal / self.tasks / 1024:.1f} kB of WAL"
        )


@dataclass(slots=True)
class Rig:
    cluster: Cluster
    tell: Connection
    peers: Path  # the environment in which the peers are installed

    def ask(self, query: str, params: Sequence[Any] = ()) -> Any:
        """The first value of the first row."""
        row = self.tell.execute(query.encode(), params).fetchone()
        return row[0] if row else None

    def last_commit(self) -> Any:
        """When the last change of a task was committed."""
        return self.ask("SELECT max(pg_xact_commit_timestamp(xmin)) FROM runtime_app_task")

    def database_cpu(self) -> float:
        """CPU seconds of all of PostgreSQL so far, also of backends that have ended."""
        postmaster = psutil.Process(int((self.cluster.postgres.data / "postmaster.pid").read_text().split("\n", 1)[0]))
        own = postmaster.cpu_times()
        return own.user + own.system + own.children_user + own.children_system + cpu(
            child.pid for child in postmaster.children(recursive=True)
        )

    def measured(
        self, tasks: int, workers: Iterable[int], start: Callable[[], None], finished: Callable[[], bool],
        ended_at: Callable[[], Any], *, limit: float = 180.0,
    ) -> Spent:
        """Start something and wait until it is finished; `ended_at` asks the database when its last task ended."""
        pids = list(workers)
        worker_cpu, database_cpu = cpu(pids), self.database_cpu()
        wal, began = self.ask("SELECT pg_current_wal_insert_lsn()"), self.ask("SELECT clock_timestamp()")
        start()
        until(finished, limit, every=0.1)
        seconds = (ended_at() - began).total_seconds()
        return Spent(
            tasks, seconds, cpu(pids) - worker_cpu, self.database_cpu() - database_cpu,
            int(self.ask("SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", [wal])),
        )


def empty(superuser: Connection) -> None:
    """Remove every task and what belongs to it; the append-only triggers refuse that to everybody else."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(f"TRUNCATE {', '.join(FACTS)} CASCADE".encode())


def cpu(pids: Iterable[int]) -> float:
    """CPU seconds of these processes and of the children they have collected."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(pid).cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def until(true: Callable[[], bool], seconds: float, *, every: float = 0.02) -> None:
    """Wait until it is true; TimeoutError at the deadline."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds:.0f} s")
        time.sleep(every)


@contextlib.contextmanager
def running_rig(peers: Path, preload: str = "") -> Iterator[Rig]:
    """A migrated database with Django set up on it in this process; all of it is gone at the end."""
    with running_cluster(None, durable=True, binaries=None, shared_preload_libraries=preload, **SERVER) as cluster:
        os.environ |= cluster.environment() | {
            "COUNTERSIGN_ENVIRONMENT": "test", "DJANGO_SETTINGS_MODULE": "config.settings", "LOG_LEVEL": "WARNING",
        }
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=PROJECT, check=True)
        import django

        django.setup()
        with psycopg.connect(cluster.database_url, autocommit=True) as tell:
            yield Rig(cluster, tell, peers)
