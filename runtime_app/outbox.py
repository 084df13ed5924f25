"""The outbox: what must leave the system, written with the change that asks for it and delivered until it is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from django.db import transaction

from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.points import point
from runtime_app.transitions import Locked, Refusal


@dataclass(frozen=True, slots=True)
class Tell:
    """Something to be told to somebody outside. `dedup_key` makes it one, however often it is written."""

    kind: str
    dedup_key: str
    payload: Mapping[str, Any]

    rank: ClassVar[int] = 60
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        put([(row.tenant_id, row.id, p, row.now) for row, p in wanted])


def put(wanted: Sequence[tuple[UUID, UUID, Tell, datetime]]) -> None:
    """Write what is to be told into the outbox, due at once: of a tenant's task, at the database's time."""
    rows.insert(
        "runtime_app_intent",
        (("id", "uuid"), ("tenant_id", "uuid"), ("task_id", "uuid"), ("kind", "text"), ("dedup_key", "text"),
         ("payload", "jsonb"), ("due_at", "timestamptz"), ("created_at", "timestamptz"), ("tries", "int"),
         ("last_error", "text")),
        [(new_id(), tenant, task, tell.kind, tell.dedup_key, json.dumps(dict(tell.payload)), at, at, 0, "")
         for tenant, task, tell, at in wanted],
        "ON CONFLICT (dedup_key) DO NOTHING",
    )


def tell_order_system(
    operation_id: UUID, *, tenant: str, order_ref: str, payment_ref: str, amount_minor: int, ref: str | None,
    status: str,
) -> Tell:
    """The order system is told what became of a refund of ours: succeeded, or returned afterwards."""
    return Tell(
        kind="order.record_refund", dedup_key=f"order.record_refund:{operation_id}:{status}",
        payload={"tenant": tenant, "order_ref": order_ref, "operation_id": str(operation_id),
                 "payment_ref": payment_ref, "amount_minor": amount_minor, "status": status, "provider_ref": ref},
    )


@dataclass(frozen=True, slots=True)
class Due:
    id: UUID
    tenant_id: UUID
    task_id: UUID
    kind: str
    payload: dict[str, Any]
    tries: int


def claim(*, limit: int, seconds: float) -> list[Due]:
    """Take due intents for `seconds`; one whose taker dies is due again after that."""
    with transaction.atomic(durable=True):
        found = rows.run(
            "UPDATE runtime_app_intent SET tries = tries + 1, due_at = runtime_now() + make_interval(secs => %s)"
            " WHERE id IN (SELECT id FROM runtime_app_intent WHERE done_at IS NULL AND due_at <= (SELECT runtime_now())"
            " ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED)"
            " RETURNING id, tenant_id, task_id, kind, payload, tries",
            [seconds, limit],
        )
        point("outbox.claim.commit")
    point("outbox.claim.committed")
    return [Due(r[0], r[1], r[2], r[3], json.loads(r[4]), r[5]) for r in found]


def done(ids: Sequence[UUID]) -> None:
    if ids:
        rows.run(
            "UPDATE runtime_app_intent SET done_at = runtime_now(), due_at = NULL, last_error = ''"
            " WHERE id = ANY(%s) AND done_at IS NULL",
            [list(ids)],
        )


def again(intent_id: UUID, *, after: float, error: str) -> None:
    rows.run(
        "UPDATE runtime_app_intent SET due_at = runtime_now() + make_interval(secs => %s), last_error = %s"
        " WHERE id = %s AND done_at IS NULL",
        [after, error[:300], intent_id],
    )


def is_anything_due() -> bool:
    return bool(
        rows.run("SELECT 1 FROM runtime_app_intent WHERE done_at IS NULL AND due_at <= (SELECT runtime_now()) LIMIT 1")
    )


Deliver = Callable[[Due], str | None]


def relay(deliver: Mapping[str, Deliver], *, limit: int, seconds: float, retry: Callable[[int], float]) -> int:
    """Deliver what is due; each deliverer answers None when done, else what went wrong. Returns how many were taken."""
    taken = claim(limit=limit, seconds=seconds)
    for intent in taken:
        error = deliver[intent.kind](intent) if intent.kind in deliver else f"nobody delivers {intent.kind}"
        point("outbox.delivered")
        if error is None:
            done([intent.id])
        else:
            again(intent.id, after=retry(intent.tries), error=error)
    return len(taken)
