"""Calls to providers, and the evidence each one leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.adapters.payments.types import Observation
from runtime_app.ids import new_id
from runtime_app.transitions import Locked, Refusal


@dataclass(frozen=True, slots=True)
class BeginCall:
    """A request that is about to be made; stored before the socket is opened."""

    id: UUID
    operation_id: UUID
    kind: str  # submit | resend | query | cancel

    rank: ClassVar[int] = 40
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.insert(
            "runtime_app_call",
            (("id", "uuid"), ("tenant_id", "uuid"), ("operation_id", "uuid"), ("kind", "text"), ("fence", "bigint"),
             ("started_at", "timestamptz"), ("finding", "text")),
            [(p.id, row.tenant_id, p.operation_id, p.kind, row.fence, row.now, "") for row, p in wanted],
        )


@dataclass(frozen=True, slots=True)
class EndCall:
    """The answer to a call and its evidence. It survives a lost guard: what was seen stays seen.

    Without a call (`call_id` None) it is evidence that came by itself, as a line of a statement does.
    """

    call_id: UUID | None
    operation_id: UUID
    kind: str  # provider_response | provider_query | statement_line
    outcome: str  # succeeded | pending | declined | not_sent | unknown
    finding: str
    seen: Observation
    id: UUID = field(default_factory=new_id)

    rank: ClassVar[int] = 41
    survives: ClassVar[bool] = True

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.insert("runtime_app_evidence", _EVIDENCE, [p._values(row) for row, p in wanted], "ON CONFLICT DO NOTHING")
        rows.run(
            "UPDATE runtime_app_call AS c SET ended_at = w.at, outcome = w.outcome, finding = w.finding"
            " FROM unnest(%s::uuid[], %s::timestamptz[], %s::text[], %s::text[]) AS w(id, at, outcome, finding)"
            " WHERE c.id = w.id AND c.ended_at IS NULL",
            [[p.call_id for _, p in wanted], [row.now for row, _ in wanted], [p.outcome for _, p in wanted],
             [_text(p.finding, 40) for _, p in wanted]],
        )

    def _values(self, row: Locked) -> tuple[Any, ...]:
        return (
            self.id, row.tenant_id, self.operation_id, self.call_id, None, self.kind, _text(self.finding, 40),
            *_observed(self.seen), row.now,
        )


def store_evidence(
    *, tenant_id: UUID, now: datetime, kind: str, finding: str, seen: Observation, operation_id: UUID | None = None,
    case_id: UUID | None = None, id: UUID | None = None,
) -> UUID:
    """Evidence that no call of an operation brought: a statement's line, a notice, a look at a payment, a statement of
    a person. Needs a transaction of the caller's."""
    id = id or new_id()
    values = (id, tenant_id, operation_id, None, case_id, kind, _text(finding, 40), *_observed(seen), now)
    rows.insert("runtime_app_evidence", _EVIDENCE, [values])
    return id


def _observed(seen: Observation) -> tuple[Any, ...]:
    return (
        _text(seen.request_line, 300), seen.http_status, _text(seen.provider_request_id or "", 120),
        seen.body_sha256 or "", None if seen.body is None else _storable(seen.body), seen.pages, seen.complete,
        seen.consistency, _text(seen.adapter_version, 60), _text(seen.api_version, 60),
    )


def _text(value: str, most: int) -> str:
    """A provider's word may be of any length and kind; its outcome is recorded all the same."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()[:most]


def _storable(body: Any) -> str:
    """A provider's answer is hostile: what PostgreSQL cannot hold (zero bytes, lone surrogates) is replaced."""
    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace").decode()
    return text.replace("\\u0000", "\\ufffd")


_EVIDENCE = (
    ("id", "uuid"), ("tenant_id", "uuid"), ("operation_id", "uuid"), ("call_id", "uuid"), ("case_id", "uuid"),
    ("kind", "text"), ("finding", "text"), ("request_line", "text"), ("http_status", "smallint"),
    ("provider_request_id", "text"), ("body_sha256", "text"), ("body", "jsonb"), ("pages", "int"), ("complete", "bool"),
    ("consistency", "text"), ("adapter_version", "text"), ("api_version", "text"), ("observed_at", "timestamptz"),
)
