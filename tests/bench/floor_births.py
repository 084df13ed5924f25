"""The floor's submits: task, first event and its payload, by hand, one at a time or many in one statement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.bench.floor import Connection, fresh_ids

BIRTH = """
WITH given AS (
    SELECT * FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::timestamptz[],
        %s::text[], %s::text[], %s::text[])
        AS g(id, request_key, request_sha256, order_ref, amount_minor, currency, at, digest, head, payload)
), born AS (
    INSERT INTO runtime_app_task (
        id, tenant_id, workflow, workflow_version, schema_version, prompt_version, lane, request_key, request_sha256,
        service_account_id, order_ref, amount_minor, currency, metadata, event_seq, event_head, due_at, created_at,
        status_since, status, revision, fence, starts, ordinal, last_error, state, fingerprint, cancel_wished_by,
        cancel_reason)
    SELECT id, %s, %s, 1, 1, '', 'default', request_key, request_sha256, %s, order_ref, amount_minor, currency, '{}',
        1, decode(head, 'hex'), at, at, at, 'queued', 1, 0, 0, 1, '', '{}', '', '', '' FROM given
    ON CONFLICT (tenant_id, request_key) DO NOTHING RETURNING id, tenant_id
), told AS (
    INSERT INTO runtime_app_event (task_id, seq, tenant_id, type, actor, at, payload_sha256, chain)
    SELECT id, 1, tenant_id, 'task.opened', %s, at, decode(digest, 'hex'), decode(head, 'hex')
    FROM born JOIN given USING (id)
)
INSERT INTO runtime_app_eventpayload (task_id, seq, tenant_id, data)
SELECT id, 1, tenant_id, payload::jsonb FROM born JOIN given USING (id)
"""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks in which tenant; the texts are ids."""

    tenant_id: str
    account_id: str | None
    actor: str


@dataclass(frozen=True, slots=True)
class Wish:
    workflow: str
    request_key: str
    order_ref: str = ""
    amount_minor: int | None = None
    currency: str | None = None


def submit(connection: Connection, asker: Asker, wishes: Sequence[Wish]) -> None:
    """Store these wishes, all of one workflow, by one durable statement."""
    at = datetime.now(UTC)
    when, ids = at.isoformat(), fresh_ids(len(wishes))
    values = [(task_id, *_told(task_id, wish, asker, at, when)) for task_id, wish in zip(ids, wishes, strict=True)]
    connection.execute(
        BIRTH,
        [*map(list, zip(*values, strict=True)), asker.tenant_id, wishes[0].workflow, asker.account_id, asker.actor],
        prepare=True,
    )


def _told(task_id: str, wish: Wish, asker: Asker, at: datetime, when: str) -> tuple[Any, ...]:
    said: Mapping[str, object] = {
        "amount_minor": wish.amount_minor, "currency": wish.currency, "order_ref": wish.order_ref, "version": 1,
        "workflow": wish.workflow,
    }
    payload = json.dumps({name: value for name, value in said.items() if value}, separators=(",", ":"))
    digest = hashlib.sha256(payload.encode())
    plain = f"{task_id[:8]}-{task_id[8:12]}-{task_id[12:16]}-{task_id[16:20]}-{task_id[20:]}"
    record = f"{plain}\x1f1\x1ftask.opened\x1f{asker.actor}\x1f{when}\x1f".encode()
    head = hashlib.sha256(record + digest.digest())
    request_sha256 = hashlib.sha256(payload.encode()).hexdigest()
    return (
        wish.request_key, request_sha256, wish.order_ref, wish.amount_minor, wish.currency, at, digest.hexdigest(),
        head.hexdigest(), payload,
    )
