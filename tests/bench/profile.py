"""Where the time goes: Python by cProfile, PostgreSQL by pg_stat_statements."""

from __future__ import annotations

import cProfile
import io
import pstats
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from tests.bench import load, submits
from tests.bench.rig import PROJECT, Rig, empty, running_rig
from tests.bench.three_steps import TASKS, WARM_UP

SHOWN = 30


def show(peers: Path, say: Callable[[str], None]) -> None:
    """Drain in this process, then submit in it: each once as it is and once under the profiler."""
    with running_rig(peers, "pg_stat_statements") as rig:
        rig.tell.execute("CREATE EXTENSION pg_stat_statements")
        drained(rig, WARM_UP)
        say(f"== {TASKS} three-step tasks, driven in one process\n")
        observed(rig, say, lambda profiler: drained(rig, TASKS, profiler), TASKS)
        say(f"== {submits.ONE_BY_ONE} submits by the service call\n")
        submitted()
        observed(rig, say, submitted, submits.ONE_BY_ONE)


def observed(rig: Rig, say: Callable[[str], None], run: Callable[[cProfile.Profile | None], float], tasks: int) -> None:
    """Run it as it is and tell what it cost, then again under the profiler."""
    rig.ask("SELECT pg_stat_statements_reset()::text")
    database, here = rig.database_cpu(), time.process_time()
    seconds = run(None)
    python, postgres = time.process_time() - here, rig.database_cpu() - database
    say(
        f"{tasks / seconds:.0f} tasks/s; a task costs {python / tasks * 1000:.2f} ms of Python's CPU and"
        f" {postgres / tasks * 1000:.2f} ms of PostgreSQL's (with making what it needs)\n"
    )
    statements(rig, say)
    profiler = cProfile.Profile()
    run(profiler)
    for order in ("cumulative", "tottime"):
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats(order).print_stats(SHOWN)
        say(text.getvalue().replace(f"{PROJECT}/", ""))


def drained(rig: Rig, tasks: int, profiler: cProfile.Profile | None = None) -> float:
    """Seconds to drive so many tasks to their end in this thread."""
    from django.conf import settings

    from runtime_app import jobs
    from runtime_app.drain import Drain

    empty(rig.tell)
    load.noop3(load.tenant().id, tasks)
    drain = Drain(lane="default", worker="bench", ports=jobs.ports(), batch=settings.WORKER_BATCH, effects=1)
    try:
        return timed(lambda: drain.run(300.0, lambda: None), profiler)
    finally:
        drain.close()


def submitted(profiler: cProfile.Profile | None = None) -> float:
    """Seconds for the submits."""
    from runtime_app.members import issue_key

    tenant = load.tenant()
    account, _ = issue_key(tenant, f"bench-{uuid4().hex[:8]}")
    return timed(lambda: submits.call(account, tenant), profiler)


def timed(run: Callable[[], object], profiler: cProfile.Profile | None) -> float:
    began = time.perf_counter()
    if profiler is not None:
        profiler.enable()
    run()
    if profiler is not None:
        profiler.disable()
    return time.perf_counter() - began


def statements(rig: Rig, say: Callable[[str], None]) -> None:
    """The statements that took PostgreSQL longest."""
    rows = rig.tell.execute(
        "SELECT calls, total_exec_time, mean_exec_time, rows, wal_bytes, regexp_replace(query, '\\s+', ' ', 'g')"
        " FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 15"
    ).fetchall()
    say(f"{'calls':>7}{'total ms':>10}{'mean ms':>9}{'rows':>8}{'WAL kB':>9}  statement")
    for calls, total, mean, count, wal, query in rows:
        say(f"{calls:>7}{total:>10.0f}{mean:>9.2f}{count:>8}{float(wal) / 1024:>9.0f}  {query[:110]}")
    say("")
