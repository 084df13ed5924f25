"""How long a three-step task takes from before its submit to its last commit, at 10 tasks a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from statistics import median, quantiles
from typing import Any
from uuid import uuid4

from tests.bench import crews, floor_births, load, woken
from tests.bench.figures import Figure
from tests.bench.floor import Connection, connect
from tests.bench.floor_births import Asker, Wish
from tests.bench.rig import Rig, empty, until

RATE, TASKS, ROUNDS = 10.0, 100, 3
ENDS = (
    "SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM runtime_app_task"
    " WHERE status = 'completed' ORDER BY id"
)


def measure(rig: Rig, say: Callable[[str], None]) -> list[Figure]:
    tenant = load.tenant()
    ours: list[tuple[float, float]] = []
    floor: list[tuple[float, float]] = []
    with (
        crews.ours(), crews.rq_workers("-m", "tests.bench.woken"),
        connect(rig.cluster.database_url) as own,
    ):
        asker = Asker(str(tenant.id), None, "bench")
        for number in range(ROUNDS):
            ours.append(paced(rig, lambda: submit_ours(tenant.id)))
            floor.append(paced(rig, lambda: submit_floor(own, asker)))
            for name, (half, most) in (("ours", ours[-1]), ("Q3f", floor[-1])):
                say(f"  round {number + 1}, {name}: p50 {half * 1000:.1f} ms, p95 {most * 1000:.1f} ms")
    return [
        Figure("latency_p50", ratio(ours, floor, 0), "times Q3f", most=1.4),
        Figure("latency_p95", ratio(ours, floor, 1), "times Q3f", most=1.7),
        Figure("latency_p50_ms", 1000 * median(o[0] for o in ours), "ms"),
        Figure("latency_p95_ms", 1000 * median(o[1] for o in ours), "ms"),
    ]


def ratio(ours: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]], which: int) -> float:
    return median(one[which] / two[which] for one, two in zip(ours, other, strict=True))


def paced(rig: Rig, submit: Callable[[], None]) -> tuple[float, float]:
    """Seconds that half of the tasks and 95 % of them took."""
    crews.rest()
    empty(rig.tell)
    submit()  # wakes whoever sleeps
    until(lambda: rig.ask("SELECT count(*) FROM runtime_app_task WHERE status = 'completed'") == 1, 30)
    crews.rest()
    empty(rig.tell)
    starts: list[float] = []
    first = time.monotonic()
    for number in range(TASKS):
        time.sleep(max(0.0, first + number / RATE - time.monotonic()))
        starts.append(datetime.now(UTC).timestamp())
        submit()
    until(lambda: rig.ask("SELECT count(*) FROM runtime_app_task WHERE status = 'completed'") == TASKS, 60, every=0.1)
    ends = [float(row[0]) for row in rig.tell.execute(ENDS).fetchall()]  # ids are in the order of the submits
    took = quantiles((end - start for start, end in zip(starts, ends, strict=True)), n=20)
    return took[9], took[18]


def submit_ours(tenant_id: Any) -> None:
    from runtime_app.bell import ring

    load.noop3(tenant_id, 1)
    ring()


def submit_floor(own: Connection, asker: Asker) -> None:
    floor_births.submit(own, asker, [Wish("noop3", uuid4().hex)])
    woken.ring()
