"""PostgreSQL and Redis together, for tests and benches: `with running_cluster(folder) as cluster`.

On the command line, `python -m runtime_app.trial.cluster [--binaries FOLDER] -- COMMAND …` runs a command beside a
throw-away cluster, with DATABASE_URL and REDIS_URL set, and ends with the command's exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from runtime_app.trial import processes
from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.postgres import Postgres
from runtime_app.trial.redis_server import RedisServer

PREFIX = "countersign-cluster-"


@dataclass
class Cluster:
    """A database named `countersign`, empty, and a Redis."""

    home: Path
    postgres: Postgres
    redis: RedisServer

    @property
    def database_url(self) -> str:
        return self.postgres.url()

    @property
    def redis_url(self) -> str:
        return self.redis.url

    def environment(self) -> dict[str, str]:
        return {"DATABASE_URL": self.database_url, "REDIS_URL": self.redis_url}

    def start(self) -> None:
        self.postgres.start()
        self.postgres.create_database()
        self.redis.start()

    def stop(self) -> None:
        self.redis.stop()
        self.postgres.stop("fast")

    def remove(self) -> None:
        self.postgres.remove()
        self.redis.remove()
        shutil.rmtree(self.home, ignore_errors=True)


def cluster_in(home: Path, *, durable: bool = False, binaries: Path | None = None, **options: str) -> Cluster:
    """A cluster with its files under `home`, not started yet. `options` are PostgreSQL settings."""
    postgres = Postgres(home / "postgres", durable=durable, binaries=binaries, options=options)
    return Cluster(home, postgres, RedisServer(home / "redis"))


@contextlib.contextmanager
def running_cluster(
    home: Path | None = None, *, durable: bool = False, binaries: Path | None = None, **options: str
) -> Iterator[Cluster]:
    """A started cluster; stopped and deleted at the end. Without `home` its files are in a temporary folder."""
    remove_abandoned()
    if home is None:
        home = Path(tempfile.mkdtemp(prefix=PREFIX))
        home.chmod(0o711)  # PostgreSQL's own user must get through
        (home / "owner.pid").write_text(f"{os.getpid()}")
    cluster = cluster_in(home, durable=durable, binaries=binaries, **options)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        cluster.remove()


def remove_abandoned() -> None:
    """End and delete temporary clusters whose owner was killed before it could."""
    for home in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            owner = int((home / "owner.pid").read_text())
            if home.stat().st_uid != os.geteuid() or psutil.pid_exists(owner):
                continue
            cluster = cluster_in(home)
            processes.end(processes.stack_processes(home, [cluster.postgres.data, cluster.redis.home]))
            cluster.remove()


def main() -> int:
    parser = argparse.ArgumentParser(prog="cluster", description="Run a command beside a throw-away cluster.")
    parser.add_argument("--binaries", type=Path, help="the bin folder of another PostgreSQL installation")
    parser.add_argument("command", nargs="+")
    wanted = parser.parse_args()
    try:
        with running_cluster(binaries=wanted.binaries) as cluster:
            return subprocess.run(wanted.command, env={**os.environ, **cluster.environment()}).returncode
    except TrialFailure as failure:
        print(failure, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
