"""Leases: who may advance a task now. A claim changes the fence, never the status; the database's clock judges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.points import point
from runtime_app.states import Status
from runtime_app.transitions import Guard


@dataclass(slots=True)
class Claimed:
    """A task in a worker's hand, as it was when claimed or last changed by that worker."""

    id: UUID
    tenant_id: UUID
    workflow: str
    workflow_version: int
    schema_version: int
    prompt_version: str
    request_key: str
    requester_id: int | None
    service_account_id: UUID | None
    status: Status
    revision: int
    fence: int
    starts: int
    ordinal: int
    order_ref: str
    payment_ref: str | None
    amount_minor: int | None
    currency: str | None
    reason: str | None
    state: dict[str, Any]
    fingerprint: str
    cancel_wished_at: datetime | None
    created_at: datetime
    now: datetime

    @property
    def guard(self) -> Guard:
        return Guard(self.id, self.revision, self.status, self.fence)


_COLUMNS = tuple(name for name in Claimed.__dataclass_fields__ if name != "now")
_DUE = """
    SELECT id AS due_id FROM runtime_app_task
    WHERE lane = %s AND due_at <= (SELECT runtime_now()) AND parked_reason IS NULL
      AND (workflow || '/' || workflow_version) = ANY(%s)
    ORDER BY due_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
"""
_THESE = """
    SELECT id AS due_id FROM runtime_app_task
    WHERE id = ANY(%s) AND status = %s AND parked_reason IS NULL
      AND (lease_owner IS NULL OR due_at <= (SELECT runtime_now()))
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
_CLAIM = f"""
WITH due AS MATERIALIZED ({{which}}
), clock AS MATERIALIZED (SELECT runtime_now() AS now FROM (SELECT count(*) FROM due) AS had
), claimed AS (
    UPDATE runtime_app_task SET fence = fence + 1, starts = starts + 1, lease_owner = %s,
        due_at = clock.now + make_interval(secs => %s)
    FROM due, clock WHERE id = due_id
    RETURNING {", ".join(_COLUMNS)}, clock.now
), begun AS (
    INSERT INTO runtime_app_attempt
        (id, tenant_id, task_id, fence, worker, workflow_version, schema_version, prompt_version, started_at)
    SELECT ids.attempt, tenant_id, claimed.id, claimed.fence, %s, workflow_version, schema_version, prompt_version, now
    FROM (SELECT *, row_number() OVER () AS n FROM claimed) AS claimed
    JOIN unnest(%s::uuid[]) WITH ORDINALITY AS ids(attempt, n) USING (n)
)
SELECT * FROM claimed
"""


def claim(*, lane: str, served: Sequence[str], worker: str, limit: int, seconds: float) -> list[Claimed]:
    """Claim up to `limit` due tasks of the served workflow versions ("refund/1") for `seconds`."""
    point("leases.claim.begin")
    with transaction.atomic(durable=True):
        found = _claimed(_DUE, [lane, list(served), limit], worker, seconds, limit)
        point("leases.claim.commit")
    point("leases.claim.committed")
    return _typed(found)


def claim_these(ids: Sequence[UUID], status: Status, *, worker: str, seconds: float) -> list[Claimed]:
    """Claim those of these tasks that have this status and that nobody has in hand, whether they are due or not."""
    point("leases.claim_these.begin")
    with transaction.atomic(durable=True):
        found = _claimed(_THESE, [list(ids), status], worker, seconds, len(ids))
        point("leases.claim_these.commit")
    point("leases.claim_these.committed")
    return _typed(found)


def _claimed(which: str, params: list[object], worker: str, seconds: float, most: int) -> list[rows.Row]:
    return rows.run(
        _CLAIM.format(which=which), [*params, worker, seconds, worker, [new_id() for _ in range(most)]]
    )


def _typed(found: Sequence[rows.Row]) -> list[Claimed]:
    claimed = [Claimed(*row) for row in found]
    for task in claimed:
        task.status = Status(task.status)
        task.state = json.loads(str(task.state))  # Django leaves jsonb as text on its connections
    return claimed


# Locked in the order in which a batch locks its tasks, so that a renewal and a commit never wait in a circle.
_HELD = """
WITH held AS MATERIALIZED (
    SELECT t.id FROM runtime_app_task t JOIN unnest(%s::uuid[], %s::bigint[]) AS w(id, fence)
    ON t.id = w.id AND t.fence = w.fence WHERE t.lease_owner = %s ORDER BY t.id FOR NO KEY UPDATE OF t
)
"""


def renew(tasks: Sequence[tuple[UUID, int]], *, worker: str, seconds: float) -> set[UUID]:
    """Prolong the leases of these (task, fence); returns the ids still held. Runs on its own connection's thread."""
    if not tasks:
        return set()
    renewed = rows.run(
        _HELD + "UPDATE runtime_app_task AS t SET due_at = runtime_now() + make_interval(secs => %s)"
        " FROM held WHERE t.id = held.id RETURNING t.id",
        [[t[0] for t in tasks], [t[1] for t in tasks], worker, seconds],
    )
    return {row[0] for row in renewed}


def release(tasks: Sequence[tuple[UUID, int]], *, worker: str) -> None:
    """Give leases back unused: the tasks are due at once, and the start does not count."""
    if tasks:
        rows.run(
            _HELD + "UPDATE runtime_app_task AS t SET due_at = runtime_now(), lease_owner = NULL,"
            " starts = greatest(0, starts - 1) FROM held WHERE t.id = held.id",
            [[t[0] for t in tasks], [t[1] for t in tasks], worker],
        )


def wake_unsuspended() -> int:
    """Wake what was parked for a suspended tenant that is suspended no longer; returns how many."""
    return len(
        rows.run(
            "UPDATE runtime_app_task SET parked_reason = NULL, due_at = runtime_now() WHERE id IN ("
            " SELECT t.id FROM runtime_app_task t JOIN runtime_app_tenant n ON n.id = t.tenant_id"
            " WHERE t.parked_reason = 'tenant_suspended' AND n.suspended_at IS NULL"
            " FOR NO KEY UPDATE OF t SKIP LOCKED) RETURNING id"
        )
    )


def due_lanes(lanes: Sequence[str]) -> set[str]:
    """Those of the lanes in which something is due now; reads PostgreSQL only."""
    found = rows.run(
        # The earliest one, by the index: how many are due the planner cannot guess, and it would rather read them all.
        "SELECT lane FROM unnest(%s::text[]) AS lane WHERE (SELECT t.due_at FROM runtime_app_task t"
        " WHERE t.lane = lane.lane AND t.due_at IS NOT NULL AND t.parked_reason IS NULL ORDER BY t.due_at LIMIT 1)"
        " <= runtime_now()",
        [list(lanes)],
    )
    return {row[0] for row in found}
