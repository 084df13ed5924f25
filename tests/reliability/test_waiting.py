"""Who waits for people costs a row: no job, no connection, no thread and no process belongs to a waiting approval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis as redis_client
from django.db import connection

from approvals.models import Approval
from runtime_app import bell, rows
from runtime_app.models import Task
from tests import worker_process
from tests.api.web_process import database_url
from tests.bench import waiting
from tests.worker_process import Program, wait_for
from tests.world import QUICK, World

MANY, ASKED, POOL = 10_000, 50, 6


class House:
    """A real worker and a real clock on the test's database, and what they hold."""

    def __init__(self, folder: Path, redis: redis_client.Redis) -> None:
        folder.mkdir(exist_ok=True)
        environment = {
            "DATABASE_URL": database_url(), "COUNTERSIGN_TIMING": json.dumps(QUICK), "LOG_LEVEL": "WARNING",
        }
        self.redis = redis
        self.programs: list[Program] = [
            worker_process.worker(environment, folder / "worker.log"),
            worker_process.clock(environment, folder / "clock.log"),
        ]

    def __enter__(self) -> House:
        for program in self.programs:
            program.start()
        try:
            bell.ring()
            wait_for(lambda: self.connections() and self.is_quiet(), 90, *self.programs)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.programs:
            program.end()

    def is_quiet(self) -> bool:
        return not self.jobs() and all(program.alive for program in self.programs)

    def jobs(self) -> list[bytes]:
        """Every job that RQ knows of, in whatever registry; one that is done is forgotten at once."""
        found: list[bytes] = list(self.redis.scan_iter("rq:job:*"))
        return found

    def connections(self) -> list[str]:
        """What each session of others on this database does."""
        return [row[0] for row in rows.run(
            "SELECT coalesce(state, '') FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )]

    def processes(self) -> tuple[int, int]:
        """How many processes there are, and threads in them."""
        all_of: list[psutil.Process] = []
        for program in self.programs:
            own = psutil.Process(program.pid)
            all_of += [own, *own.children(recursive=True)]
        return len(all_of), sum(one.num_threads() for one in all_of)

    def settled(self) -> tuple[int, tuple[int, int]]:
        """Connections, processes and threads when there has been nothing to do for a few looks of the clock."""
        looks: list[tuple[int, tuple[int, int]]] = []

        def steady() -> bool:
            if not self.is_quiet():
                looks.clear()
                return False
            looks.append((len(self.connections()), self.processes()))
            return len(looks) >= 40 and len(set(looks[-40:])) == 1

        wait_for(steady, 90, *self.programs)
        return looks[-1]


@pytest.mark.processes
def test_ten_thousand_waiting_approvals_hold_nothing(world: World, redis: Any, tmp_path: Path) -> None:
    """Done when, lesson 18: with a worker and a clock at work RQ, pg_stat_activity and the process list are as they
    are without one waiting approval; all of them survive the end of both processes, and each can still be decided."""
    with House(tmp_path / "empty", redis) as house:
        without = house.settled()
    asked = [world.ask(world.order()) for _ in range(ASKED)]
    world.until(lambda: Approval.objects.filter(state="open").count() == ASKED)
    waiting.approvals(world.amber, world.rita, MANY - ASKED)
    with House(tmp_path / "full", redis) as house:
        sessions, (processes, threads) = house.settled()
        # Threads and their sessions are opened when they are first needed; ten thousand would be another number.
        assert processes == without[1][0]
        assert sessions <= without[0] + POOL and threads <= without[1][1] + 2 * POOL
        assert Approval.objects.filter(state="open").count() == MANY
        assert not Task.objects.filter(lease_owner__isnull=False).exists()
        world.decide(world.ada, world.approval(asked[0]))
        wait_for(lambda: Task.objects.get(pk=asked[0].pk).status == "completed", 30, *house.programs)
        wait_for(lambda: not Approval.objects.filter(state="open").exclude(task__status="waiting_approval").exists(), 5)
    assert Approval.objects.filter(state="open").count() == MANY - 1
    connection.close()
