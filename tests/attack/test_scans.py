"""The nets run every few seconds and the loader with every batch: none of them may read a whole table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from runtime_app import leases, outbox, rows, watch
from runtime_app.ledger.operations import wake_free_siblings
from runtime_app.workflows.refund import facts
from tests.world import World, empty_tables

MANY = 5000


def _fill(world: World) -> None:
    """Many ended tasks and balances of one tenant, as after some months."""
    rows.run(
        "INSERT INTO runtime_app_task (id, tenant_id, workflow, workflow_version, schema_version, prompt_version, lane,"
        " request_key, request_sha256, status, revision, fence, starts, ordinal, last_error, order_ref, metadata,"
        " state, fingerprint, cancel_wished_by, cancel_reason, event_seq, event_head, payment_ref)"
        " SELECT gen_random_uuid(), %s, 'refund', 1, 1, '', 'default', 'k' || n, '', 'queued', 1, 0, 0, 1, '',"
        " 'o' || n, '{}', '{}', '', '', '', 0, '', 'p' || n FROM generate_series(1, %s) AS n", [world.amber.id, MANY],
    )
    rows.run(
        "INSERT INTO runtime_app_balance (id, tenant_id, account, order_ref, payment_ref, currency, captured_minor,"
        " reserved_minor, refunded_minor, external_minor, excess_minor, read_version) SELECT gen_random_uuid(), %s,"
        " 'stripe', 'o' || n, 'p' || n, 'USD', 1, 0, 0, 0, 0, 1 FROM generate_series(1, %s) AS n",
        [world.amber.id, MANY],
    )
    for table in ("task", "balance", "operation", "intent", "tenant"):
        rows.run(f"ANALYZE runtime_app_{table}")


@pytest.mark.parametrize("look", [
    wake_free_siblings, leases.wake_unsuspended, lambda: leases.due_lanes(["default"]), outbox.is_anything_due,
    watch.is_anything_due, lambda: facts.payments_of(uuid4(), "o77"),
], ids=["siblings", "suspended", "due", "outbox", "late", "loader"])
def test_looking_for_little_reads_little(
    world: World, look: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Capacity, M36: what is looked at grows with what waits, not with what there ever was."""
    _fill(world)
    read = 0
    run = rows.run

    def plan_of(query: str, params: Any = ()) -> Any:
        nonlocal read
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query, params)
            read += _read(cursor.fetchone()[0])
        return run(query, params)

    monkeypatch.setattr(rows, "run", plan_of)
    look()
    monkeypatch.undo()
    empty_tables()  # these rows have no events, which the invariants would tell
    assert read < MANY / 10


def _read(plan: Any) -> int:
    """The rows that the scans of big tables met, kept or thrown away."""
    if isinstance(plan, list):
        return sum(_read(one) for one in plan)
    own = 0
    if plan.get("Relation Name", "") in {"runtime_app_task", "runtime_app_balance"}:
        own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return int(own) + sum(_read(one) for one in [plan.get("Plan", {}), *plan.get("Plans", [])] if one)
