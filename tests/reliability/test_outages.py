"""R8: Redis emptied, Redis away, PostgreSQL restarted without warning, all of it under load, and nobody helps."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

import httpx
import pytest
import redis

from runtime_app.trial.cluster import Cluster, running_cluster
from tests import worker_process
from tests.reliability.matrix import DRILL
from tests.reliability.room import QUICK, Room, running_room
from tests.worker_process import Crew, Program, wait_for

TASKS = 240 if DRILL else 60
AWAY = 60.0 if DRILL else 8.0  # seconds without Redis, or without PostgreSQL


@dataclass
class Stack:
    """Two workers, a clock and a web process, kept alive by a supervisor, on servers of their own."""

    cluster: Cluster
    room: Room
    url: str
    crew: Crew
    numbers: Counter[str] = field(default_factory=Counter)

    @property
    def programs(self) -> tuple[Program, ...]:
        return self.crew.programs


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("outages")
    with (
        running_cluster() as cluster,
        running_room(cluster, folder, 0, threshold=5000, **QUICK) as room,
        worker_process.web(room.environment, folder / "web.log") as (web, url),
    ):
        crew = Crew(
            web, worker_process.worker(room.environment, folder / "worker-1.log"),
            worker_process.worker(room.environment, folder / "worker-2.log"),
            worker_process.clock(room.environment, folder / "clock.log"),
        )
        try:
            wait_for(lambda: worker_process.answers(url), 60, web)
            yield Stack(cluster, room, url, crew)
        finally:
            crew.close()


@dataclass
class Load:
    """Applications that ask for small refunds until each has been accepted, and what they were answered."""

    stack: Stack
    names: list[str]
    answers: Counter[int] = field(default_factory=Counter)
    accepted: set[str] = field(default_factory=set)
    bad: list[str] = field(default_factory=list)
    over: Event = field(default_factory=Event)

    def ask(self, name: str) -> None:
        """Ask for one refund, again under the same key while the answer is 503 or none, as a caller should."""
        body = {"workflow": "refund", "order_ref": name, "amount_minor": 1200, "currency": "USD"}
        headers = {"Authorization": f"Bearer {self.stack.room.key}", "Idempotency-Key": name}
        until = time.monotonic() + AWAY + 60
        with httpx.Client(base_url=self.stack.url, headers=headers, timeout=20, trust_env=False) as caller:
            while time.monotonic() < until and not self.over.is_set():
                try:
                    answer = caller.post("/api/v1/tasks", json=body)
                except httpx.TransportError:
                    continue
                self.answers[answer.status_code] += 1
                if answer.status_code == 202:
                    self.accepted.add(name)
                    return
                if answer.status_code != 503:
                    self.bad.append(f"{answer.status_code} {answer.text[:300]}")
                    return
                self.over.wait(0.1)


def ended(stack: Stack, names: list[str]) -> Counter[str]:
    told = stack.room.ask("SELECT status, count(*) FROM runtime_app_task WHERE request_key = ANY(%s) GROUP BY 1", names)
    return Counter(dict(told))


def run_load(stack: Stack, what: str, outage: Callable[[Stack], None], print_line: Callable[[str], None]) -> None:
    """Ask for refunds, let the outage happen in their midst, and wait until every one of them is completed."""
    names = [f"{what}-{n}" for n in range(TASKS)]
    for n, name in enumerate(names):
        stack.room.sandbox.order(name, payments={f"pi_{name}": 5000})
        if n % 10 == 0:
            stack.room.sandbox.fault("F4", match={"payment_ref": f"pi_{name}"})
    load = Load(stack, names)
    with ThreadPoolExecutor(4) as callers:
        try:
            asked = [callers.submit(load.ask, name) for name in names]
            wait_for(lambda: len(load.accepted) >= TASKS // 6, 60, *stack.programs)
            outage(stack)
            back = time.monotonic()
            before = ended(stack, names)["completed"]
            wait_for(lambda: ended(stack, names)["completed"] > before, 60, *stack.programs)
            first = time.monotonic() - back
            for future in asked:
                future.result()
            wait_for(lambda: ended(stack, names)["completed"] == TASKS, 120, *stack.programs)
        finally:
            load.over.set()
    assert not load.bad, load.bad[:5]
    assert load.accepted == set(names)
    paid = Counter(refund["payment_ref"] for refund in stack.room.sandbox.refunds())
    assert {name: paid[f"pi_{name}"] for name in names} == dict.fromkeys(names, 1)
    stack.room.check()
    done = time.monotonic() - back
    answers = ",".join(f"{status}:{many}" for status, many in sorted(load.answers.items()))
    starts = ",".join(str(program.starts) for program in stack.programs)
    print_line(
        f"R8 {what} tasks={TASKS} lost=0 doubled=0 answers={answers} first_progress_s={first:.2f} done_s={done:.1f}"
        f" starts_so_far={starts}"
    )


def emptied(stack: Stack) -> None:
    with redis.Redis.from_url(stack.cluster.redis_url) as client:
        client.flushall()


def redis_away(stack: Stack) -> None:
    stack.cluster.redis.stop()
    Event().wait(AWAY)
    stack.cluster.redis.start()


def postgres_restarted(stack: Stack) -> None:
    stack.cluster.postgres.restart("immediate")


def postgres_away(stack: Stack) -> None:
    stack.cluster.postgres.stop("immediate")
    Event().wait(AWAY)
    stack.cluster.postgres.start()


def postgres_killed(stack: Stack) -> None:
    stack.cluster.postgres.kill()
    stack.cluster.postgres.start()


OUTAGES = [emptied, redis_away, postgres_restarted, postgres_away, *([postgres_killed] if DRILL else [])]


@pytest.mark.timeout(900 if DRILL else 300)
@pytest.mark.parametrize("outage", OUTAGES)
def test_an_outage_under_load_loses_and_doubles_nothing(
    outage: Callable[[Stack], None], stack: Stack, print_line: Callable[[str], None]
) -> None:
    """R8, M17, C24: everything ends right without help, and callers are told 202 or 503, never 500."""
    run_load(stack, outage.__name__, outage, print_line)
