"""Tasks come into being here: row, first event and the due time that is their first intent, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from runtime_app import chronicle, rows
from runtime_app.chronicle import Say
from runtime_app.ids import new_id
from runtime_app.models import ServiceAccount, Task, Tenant, User
from runtime_app.points import point
from runtime_app.states import Status


@dataclass(frozen=True, slots=True)
class NewTask:
    tenant_id: UUID
    workflow: str
    workflow_version: int
    request_key: str
    request_sha256: str
    actor: str
    lane: str = "default"
    schema_version: int = 1
    prompt_version: str = ""
    session_id: UUID | None = None
    service_account_id: UUID | None = None
    requester_id: int | None = None
    order_ref: str = ""
    payment_ref: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    reason: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=new_id)


_COLUMNS = (
    ("id", "uuid"), ("tenant_id", "uuid"), ("workflow", "text"), ("workflow_version", "int"), ("schema_version", "int"),
    ("prompt_version", "text"), ("lane", "text"), ("request_key", "text"), ("request_sha256", "text"),
    ("session_id", "uuid"), ("service_account_id", "uuid"), ("requester_id", "bigint"), ("order_ref", "text"),
    ("payment_ref", "text"), ("amount_minor", "bigint"), ("currency", "text"), ("reason", "text"),
    ("metadata", "jsonb"), ("state", "jsonb"), ("event_seq", "int"), ("event_head", "bytea"), ("due_at", "timestamptz"),
    ("created_at", "timestamptz"), ("status_since", "timestamptz"),
)
_INSERT = (
    "INSERT INTO runtime_app_task ({names}, status, revision, fence, starts, ordinal, last_error, fingerprint,"
    " cancel_wished_by, cancel_reason)"
    " SELECT *, 'queued', 1, 0, 0, 1, '', '', '', '' FROM unnest({arrays})"
    " ON CONFLICT (tenant_id, request_key) DO NOTHING RETURNING id"
).format(names=", ".join(n for n, _ in _COLUMNS), arrays=", ".join(f"%s::{kind}[]" for _, kind in _COLUMNS))


def open_tasks(new: Sequence[NewTask]) -> dict[UUID, datetime]:
    """Store these tasks; returns the ids stored, each with when. One whose request key is taken is not among them."""
    point("births.begin")
    with transaction.atomic(durable=True):
        now: datetime = rows.run("SELECT runtime_now()")[0][0]
        told = {
            n.id: chronicle.lines(
                task_id=n.id, tenant_id=n.tenant_id, after=0, head=b"", actor=n.actor, at=now,
                says=[Say("task.opened", _opened(n))],
            )
            for n in new
        }
        values = [
            (n.id, n.tenant_id, n.workflow, n.workflow_version, n.schema_version, n.prompt_version, n.lane,
             n.request_key, n.request_sha256, n.session_id, n.service_account_id, n.requester_id, n.order_ref,
             n.payment_ref, n.amount_minor, n.currency, n.reason, json.dumps(dict(n.metadata)),
             json.dumps(dict(n.state)), 1, told[n.id][-1].chain, now, now, now)
            for n in new
        ]
        stored = {row[0] for row in rows.run(_INSERT, rows.arrays(_COLUMNS, values))}
        chronicle.write([line for n in new if n.id in stored for line in told[n.id]])
        point("births.commit")
    point("births.committed")
    return dict.fromkeys(stored, now)


def as_stored(
    new: NewTask, at: datetime, *, tenant: Tenant, requester: User | None, account: ServiceAccount | None
) -> Task:
    """The row as it was just written. All of it is in hand; reading it back would cost as much as writing it."""
    task = Task(
        id=new.id, tenant=tenant, session_id=new.session_id, workflow=new.workflow,
        workflow_version=new.workflow_version, schema_version=new.schema_version, prompt_version=new.prompt_version,
        lane=new.lane, request_key=new.request_key, request_sha256=new.request_sha256, requester=requester,
        service_account=account, status=Status.QUEUED, status_since=at, due_at=at, order_ref=new.order_ref,
        payment_ref=new.payment_ref, amount_minor=new.amount_minor, currency=new.currency, reason=new.reason,
        metadata=dict(new.metadata), state=dict(new.state), event_seq=1, created_at=at,
    )
    task._state.adding = False
    return task


def _opened(new: NewTask) -> dict[str, Any]:
    said = {
        "workflow": new.workflow, "version": new.workflow_version, "order_ref": new.order_ref,
        "payment_ref": new.payment_ref, "amount_minor": new.amount_minor, "currency": new.currency,
    }
    return {name: value for name, value in said.items() if value not in (None, "")}
