"""Event records: one hash chain a task, the record apart from its payload."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from runtime_app import rows
from runtime_app.events import TYPES


@dataclass(frozen=True, slots=True)
class Say:
    """An event to be recorded; `data` holds text, whole numbers, truth values, None and lists or maps of them only."""

    type: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            raise ValueError(f"no event type {self.type}")


@dataclass(frozen=True, slots=True)
class Line:
    task_id: UUID
    seq: int
    tenant_id: UUID
    type: str
    actor: str
    at: datetime
    payload_sha256: bytes
    chain: bytes
    payload: str


def lines(
    *, task_id: UUID, tenant_id: UUID, after: int, head: bytes, actor: str, at: datetime, says: Sequence[Say]
) -> list[Line]:
    """The records that follow number `after`, each one's hash covering the one before it."""
    told = []
    for seq, say in enumerate(says, start=after + 1):
        payload = canonical(say.data) if say.data else ""
        digest = hashlib.sha256(payload.encode()).digest()
        head = link(head, task_id=task_id, seq=seq, type=say.type, actor=actor, at=at, payload_sha256=digest)
        told.append(Line(task_id, seq, tenant_id, say.type, actor, at, digest, head, payload))
    return told


def canonical(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def link(
    previous: bytes, *, task_id: UUID, seq: int, type: str, actor: str, at: datetime, payload_sha256: bytes
) -> bytes:
    """The hash of one record in its task's chain."""
    record = f"{task_id}\x1f{seq}\x1f{type}\x1f{actor}\x1f{at.astimezone(UTC).isoformat()}\x1f".encode()
    return hashlib.sha256(previous + record + payload_sha256).digest()


_RECORD = (
    ("task_id", "uuid"), ("seq", "int"), ("tenant_id", "uuid"), ("type", "text"), ("actor", "text"),
    ("at", "timestamptz"), ("payload_sha256", "bytea"), ("chain", "bytea"),
)
_PAYLOAD = (("task_id", "uuid"), ("seq", "int"), ("tenant_id", "uuid"), ("data", "jsonb"))


_NO_PAYLOAD = ["{}"] * len(_PAYLOAD)
_WRITE = (  # one round trip: every transition and every birth makes it
    f"WITH told AS ({rows.insert_query('runtime_app_event', _RECORD)}),"
    f" said AS ({rows.insert_query('runtime_app_eventpayload', _PAYLOAD)})"
    " SELECT pg_notify(%s, tenant) FROM unnest(%s::text[]) AS tenant"
)
CHANNEL = "events"  # PostgreSQL's channel on which streams hear that a tenant has new events


def write(told: Sequence[Line]) -> None:
    """Insert the records and their payloads; the task's own count and head must already be written.

    Streams hear of it when the transaction commits: one notice a tenant, which says nothing but whose events they are.
    """
    if not told:
        return
    records = [(t.task_id, t.seq, t.tenant_id, t.type, t.actor, t.at, t.payload_sha256, t.chain) for t in told]
    payloads = [(t.task_id, t.seq, t.tenant_id, t.payload) for t in told if t.payload]
    tenants = sorted({str(t.tenant_id) for t in told})
    rows.run(
        _WRITE,
        [*rows.arrays(_RECORD, records), *(rows.arrays(_PAYLOAD, payloads) if payloads else _NO_PAYLOAD), CHANNEL,
         tenants],
    )
