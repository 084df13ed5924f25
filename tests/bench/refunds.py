"""Whole refunds against the sandbox, by two workers of ours and by two of the floor's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

from tests.bench import crews, load
from tests.bench.figures import Figure
from tests.bench.rig import Rig, Spent, empty
from tests.bench.three_steps import ratio, ring
from tests.sandbox_process import SandboxProcess, running_sandbox

REFUNDS, WARM_UP, ROUNDS = 200, 20, 3


def measure(rig: Rig, say: Callable[[str], None]) -> list[Figure]:
    from runtime_app.members import issue_key

    tenant = load.tenant()
    account, _ = issue_key(tenant, f"bench-{uuid4().hex[:8]}")
    ours: list[Spent] = []
    floor: list[Spent] = []
    with tempfile.TemporaryDirectory() as folder, running_sandbox(Path(folder)) as sandbox:
        os.environ["SANDBOX_URL"] = sandbox.url
        load.account(tenant, sandbox.url)

        def drive(count: int, workers: Iterable[int], go: Callable[[], None]) -> Spent:
            crews.rest()
            empty(rig.tell)
            load.refunds(account, tenant, orders(sandbox, count))
            return refund_all(rig, count, workers, go)

        with crews.ours() as workers, crews.floor("tests.bench.floor_refunds") as crew:
            drive(WARM_UP, workers, ring)
            drive(WARM_UP, crew.pids, crew.drain)
            for number in range(1, ROUNDS + 1):
                ours.append(drive(REFUNDS, workers, ring))
                floor.append(drive(REFUNDS, crew.pids, crew.drain))
                say(f"  round {number}, ours: {ours[-1]}")
                say(f"  round {number}, floor: {floor[-1]}")
    return [
        Figure("refund_vs_floor", ratio(ours, floor, lambda s: s.rate), "of the floor", least=0.3),
        Figure("refund_worker_cpu", ratio(ours, floor, lambda s: s.worker_cpu / s.tasks), "times the floor"),
        Figure("refund_rate", median(s.rate for s in ours), "refunds/s"),
        Figure("refund_floor_rate", median(s.rate for s in floor), "refunds/s"),
    ]


def orders(sandbox: SandboxProcess, count: int) -> list[str]:
    refs = [f"ORD-{uuid4().hex[:10]}" for _ in range(count)]
    for ref in refs:
        sandbox.order(ref, tenant="bench", payments={f"pi_{ref}": 10_000})
    return refs


def refund_all(rig: Rig, count: int, workers: Iterable[int], go: Callable[[], None]) -> Spent:
    """What it costs until the last refund is completed; telling the order system of it comes after."""

    def all_done() -> bool:
        found: Any = rig.tell.execute("SELECT status, count(*) FROM runtime_app_task GROUP BY status").fetchall()
        if any(status in {"failed", "reconciling", "waiting_input"} for status, _ in found):
            raise RuntimeError(f"not every refund went well: {found}")
        return bool(found == [("completed", count)])

    return rig.measured(count, workers, go, all_done, rig.last_commit)
