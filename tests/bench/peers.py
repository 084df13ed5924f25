"""Systems of others that do W1 on the same PostgreSQL, from an environment of their own."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from tests.bench import crews
from tests.bench.rig import PROJECT, Connection, Rig, Spent

PROGRAM = ("-m", "tests.bench.dbos_program")


@dataclass(frozen=True, slots=True)
class Dbos:
    """Two DBOS workers on a database of their own. They are paused except when it is their turn: they poll."""

    rig: Rig
    python: str
    url: str
    tell: Connection
    started: list[subprocess.Popen[str]]

    def drive(self, tasks: int) -> Spent:
        """Store the tasks, then let the workers drive them to their end; storing is not counted."""
        subprocess.run([self.python, *PROGRAM, "enqueue", self.url, str(tasks)], cwd=PROJECT, check=True)
        try:
            return self.rig.measured(
                tasks, [process.pid for process in self.started], lambda: self._send(signal.SIGCONT),
                lambda: self._ask("SELECT count(*) FROM dbos.workflow_status WHERE status <> 'SUCCESS'") == 0,
                lambda: datetime.fromtimestamp(
                    self._ask("SELECT max(completed_at) FROM dbos.workflow_status") / 1000, tz=UTC
                ),
            )
        finally:
            self._send(signal.SIGSTOP)

    def _ask(self, query: str) -> Any:
        row = self.tell.execute(query.encode()).fetchone()
        return row[0] if row else None

    def _send(self, number: signal.Signals) -> None:
        for process in self.started:
            process.send_signal(number)


@contextlib.contextmanager
def dbos(rig: Rig, environment: Path) -> Iterator[Dbos]:
    rig.cluster.postgres.create_database("dbos")
    url, python = rig.cluster.postgres.url("dbos"), str(environment.absolute() / "bin" / "python")
    with crews.processes(*PROGRAM, "work", url, piped=True, python=python) as started:
        for process in started:
            crews.heard(process)
            process.send_signal(signal.SIGSTOP)
        with psycopg.connect(url, autocommit=True) as tell:
            yield Dbos(rig, python, url, tell, started)
