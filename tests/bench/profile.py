"""Where the time of a drain goes: Python by cProfile, PostgreSQL by pg_stat_statements."""

from __future__ import annotations

import cProfile
import io
import pstats
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import load
from tests.bench.rig import PROJECT, Rig, empty, running_rig
from tests.bench.three_steps import TASKS, WARM_UP

SHOWN = 35


def show(peers: Path, say: Callable[[str], None]) -> None:
    """Drain in this process, once as it is and once under the profiler, and print what cost most."""
    with running_rig(peers, "pg_stat_statements") as rig:
        rig.tell.execute("CREATE EXTENSION pg_stat_statements")
        drain(rig, WARM_UP)
        rig.ask("SELECT pg_stat_statements_reset()::text")
        database, began = rig.database_cpu(), time.process_time()
        seconds = drain(rig, TASKS)
        say(f"{TASKS} tasks in one process: {TASKS / seconds:.0f} tasks/s, {seconds:.2f} s, of which Python's CPU"
            f" {time.process_time() - began:.2f} s and PostgreSQL's CPU {rig.database_cpu() - database:.2f} s"
            " (both with storing the tasks)\n")
        statements(rig, say)
        profiler = cProfile.Profile()
        drain(rig, TASKS, profiler)
    for order in ("cumulative", "tottime"):
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats(order).print_stats(SHOWN)
        say(text.getvalue().replace(f"{PROJECT}/", ""))


def drain(rig: Rig, tasks: int, profiler: cProfile.Profile | None = None) -> float:
    """Seconds to drive so many tasks to their end in this thread."""
    from django.conf import settings

    from runtime_app import jobs
    from runtime_app.drain import Drain

    empty(rig.tell)
    load.noop3(load.tenant().id, tasks)
    drain = Drain(lane="default", worker="bench", ports=jobs.ports(), batch=settings.WORKER_BATCH, effects=1)
    began = time.perf_counter()
    if profiler is not None:
        profiler.enable()
    drain.run(300.0, lambda: None)
    if profiler is not None:
        profiler.disable()
    seconds = time.perf_counter() - began
    drain.close()
    return seconds


def statements(rig: Rig, say: Callable[[str], None]) -> None:
    rows = rig.tell.execute(
        "SELECT calls, total_exec_time, mean_exec_time, rows, wal_bytes, regexp_replace(query, '\\s+', ' ', 'g')"
        " FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 15"
    ).fetchall()
    say(f"{'calls':>7}{'total ms':>10}{'mean ms':>9}{'rows':>8}{'WAL kB':>9}  statement")
    for calls, total, mean, count, wal, query in rows:
        say(f"{calls:>7}{total:>10.0f}{mean:>9.2f}{count:>8}{float(wal) / 1024:>9.0f}  {query[:110]}")
    say("")
