"""What must hold at every moment, as queries that return the rows which break it.

Tests, the hourly check, the command and the page all ask here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connection, transaction

from runtime_app import rows
from runtime_app.invariants import derived, provider
from runtime_app.invariants.derived import DERIVED
from runtime_app.invariants.money import MONEY
from runtime_app.invariants.provider import AT_PROVIDER, SETTLED
from runtime_app.invariants.records import RECORDS
from runtime_app.invariants.tasks import TASKS
from runtime_app.invariants.types import Invariant, Violation

QUERIES: tuple[Invariant, ...] = (*TASKS, *MONEY, *RECORDS)
STUCK = {"nothing_is_stuck": "Nothing that is due for work has been left alone for too long."}
NAMES: Mapping[str, str] = {**{i.name: i.says for i in QUERIES}, **DERIVED, **AT_PROVIDER, **SETTLED, **STUCK}

__all__ = ["NAMES", "QUERIES", "Invariant", "Violation", "check"]


def check(
    ledger: Sequence[Mapping[str, Any]] | None = None,
    *,
    requests: Sequence[Mapping[str, Any]] = (),
    stuck_after: float | None = None,
    settled: bool = False,
) -> list[Violation]:
    """Every row that breaks an invariant, all read at one moment; empty when all is well.

    `ledger` is what the provider says it moved (the sandbox's `GET /_sandbox/refunds`), `requests` what it was sent
    (`GET /_sandbox/requests`). `stuck_after` seconds of being overdue make a task stuck; None does not ask.
    `settled` says that nothing is moving, so that the ledger's totals must be ours too.
    """
    found: list[Violation] = []
    with _one_moment():
        for invariant in QUERIES:
            found += [Violation(invariant.name, str(r[0]), str(r[1])) for r in rows.run(invariant.query)]
        found += derived.check()
        if ledger is not None:
            found += provider.check(ledger, requests)
            found += provider.totals(ledger) if settled else ()
        if stuck_after is not None:
            found += _stuck(stuck_after)
    return found


def _stuck(seconds: float) -> list[Violation]:
    overdue = rows.run(
        "SELECT id, status || ' and due since ' || due_at FROM runtime_app_task WHERE parked_reason IS NULL"
        " AND due_at < runtime_now() - make_interval(secs => %s)",
        [seconds],
    )
    return [Violation("nothing_is_stuck", str(row[0]), row[1]) for row in overdue]


@contextlib.contextmanager
def _one_moment() -> Iterator[None]:
    """One snapshot for all queries; inside a transaction of the caller's, its own view of things."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        rows.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
