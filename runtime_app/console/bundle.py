"""The evidence of a case as one document: what was seen, by whom, with every digest, and no secret."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from runtime_app.chronicle import canonical
from runtime_app.desk.situation import Situation
from runtime_app.models import Event, Evidence

FORMAT = "countersign.evidence/1"
_CASE = (
    "id", "class_name", "severity", "state", "blocks", "order_ref", "payment_ref", "amount_minor", "currency",
    "details", "why", "deadline_at", "opened_at", "closed_at", "closed_by", "outcome", "revision",
)
_OPERATION = (
    "id", "effect", "ordinal", "account", "order_ref", "payment_ref", "amount_minor", "currency", "exponent",
    "idempotency_key", "request_sha256", "api_version", "authority", "fingerprint", "state", "provider_ref",
    "first_submit_at", "last_possible_send_at", "checks", "absents", "resends", "note", "created_at",
)
_TASK = ("id", "workflow", "workflow_version", "request_key", "status", "revision", "cancel_wished_at", "event_seq")
_CALL = ("id", "kind", "fence", "started_at", "ended_at", "outcome", "finding")
_EVIDENCE = (
    "id", "kind", "finding", "request_line", "http_status", "provider_request_id", "body_sha256", "body", "pages",
    "complete", "consistency", "adapter_version", "api_version", "observed_at",
)
_ENTRY = ("id", "kind", "actor", "evidence_sha256", "data", "at")
_LINE = ("ref", "kind", "amount_minor", "currency", "provider_ref", "our_ref", "payment_ref", "occurred_at",
         "class_name", "raw_sha256")
_BALANCE = ("account", "payment_ref", "currency", "captured_minor", "reserved_minor", "refunded_minor",
            "external_minor", "external_order_minor", "external_provider_minor", "excess_minor", "read_at")


def bundle(s: Situation) -> dict[str, Any]:
    """Plain values; `sha256` is the digest of all the rest in canonical form."""
    said: dict[str, Any] = {
        "format": FORMAT, "tenant": s.case.tenant.slug, "made_at": _plain(s.now),
        "evidence_sha256": s.evidence_sha256, "case": _of(s.case, _CASE),
        "operation": _of(s.operation, _OPERATION) if s.operation else None,
        "task": _of(s.task, _TASK) if s.task else None, "balance": _of(s.balance, _BALANCE) if s.balance else None,
        "calls": _all(s.calls, _CALL), "evidence": _all(_evidence(s), _EVIDENCE), "entries": _all(s.entries, _ENTRY),
        "statement_lines": _all(s.lines, _LINE), "events": _events(s),
    }
    return said | {"sha256": hashlib.sha256(canonical(said).encode()).hexdigest()}


def text(said: dict[str, Any]) -> str:
    return json.dumps(said, indent=2, ensure_ascii=True, sort_keys=True) + "\n"


def _all(rows: Iterable[Model], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [_of(row, names) for row in rows]


def _of(row: Model, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _plain(getattr(row, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, UUID) else value


def _evidence(s: Situation) -> QuerySet[Evidence]:
    """All of it; the page shows the newest only."""
    mine = Q(case=s.case) | Q(operation=s.operation) if s.operation is not None else Q(case=s.case)
    return Evidence.objects.filter(mine).order_by("observed_at", "id")


def _events(s: Situation) -> list[dict[str, Any]]:
    """The task's events by type and digest: enough to hold them against the chain, without their payloads."""
    if s.task is None:
        return []
    return [
        {"seq": e.seq, "type": e.type, "actor": e.actor, "at": _plain(e.at),
         "payload_sha256": bytes(e.payload_sha256).hex(), "chain": bytes(e.chain).hex()}
        for e in Event.objects.filter(task=s.task).order_by("seq")
    ]
