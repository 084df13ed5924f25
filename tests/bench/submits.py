"""Submits a second in one process: the service call and the bulk call, each against the same rows by hand."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any
from uuid import uuid4

from redis import Redis

from tests.bench import floor_births, load
from tests.bench.figures import Figure
from tests.bench.floor import connect
from tests.bench.floor_births import Asker, Wish
from tests.bench.rig import Rig, empty

ONE_BY_ONE, BULK, ROUNDS = 200, 2000, 3


def measure(rig: Rig, say: Callable[[str], None]) -> list[Figure]:
    from runtime_app import access
    from runtime_app.members import issue_key

    tenant = load.tenant()
    account, _ = issue_key(tenant, f"bench-{uuid4().hex[:8]}")
    asker = Asker(str(tenant.id), str(account.id), access.actor(account))
    found: dict[str, list[float]] = {name: [] for name in ("call", "by hand", "bulk call", "bulk by hand")}
    with connect(rig.cluster.database_url) as own, Redis.from_url(os.environ["REDIS_URL"]) as redis:
        for number in range(ROUNDS + 1):
            empty(rig.tell)
            rates = {
                "call": timed(lambda: call(account, tenant), ONE_BY_ONE),
                "by hand": timed(lambda: by_hand(own, asker, 1, ONE_BY_ONE), ONE_BY_ONE),
                "bulk call": timed(lambda: load.refunds(account, tenant, [order() for _ in range(BULK)]), BULK),
                "bulk by hand": timed(lambda: by_hand(own, asker, load.CHUNK, BULK), BULK),
            }
            redis.flushall()
            if number:  # the first round warms up
                for name, rate in rates.items():
                    found[name].append(rate)
                say("  " + ", ".join(f"{name} {rate:.0f}/s" for name, rate in rates.items()))
        empty(rig.tell)
    return [
        Figure("submit", ratio(found["call"], found["by hand"]), "of the floor", least=0.5),
        Figure("submit_bulk", ratio(found["bulk call"], found["bulk by hand"]), "of the floor", least=0.5),
        Figure("submit_rate", median(found["call"]), "tasks/s"),
        Figure("submit_bulk_rate", median(found["bulk call"]), "tasks/s"),
    ]


def ratio(ours: Sequence[float], other: Sequence[float]) -> float:
    return median(one / two for one, two in zip(ours, other, strict=True))


def timed(run: Callable[[], None], count: int) -> float:
    began = time.perf_counter()
    run()
    return count / (time.perf_counter() - began)


def order() -> str:
    return f"ORD-{uuid4().hex[:10]}"


def call(account: Any, tenant: Any) -> None:
    from runtime_app import tasks

    for _ in range(ONE_BY_ONE):
        request = tasks.Request("refund", order(), amount_minor=1000, currency="USD")
        tasks.create(account, tenant, request, request_key=uuid4().hex)


def by_hand(own: Any, asker: Asker, at_once: int, count: int) -> None:
    for _ in range(count // at_once):
        floor_births.submit(own, asker, [
            Wish("refund", uuid4().hex, order(), 1000, "USD") for _ in range(at_once)
        ])
