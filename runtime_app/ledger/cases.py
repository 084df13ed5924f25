"""Cases as parts of transitions: opened with what shows them, closed with what proves the outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.reconciliation.classes import BY_PROOF, CLASSES
from runtime_app.transitions import Locked, Refusal


@dataclass(frozen=True, slots=True)
class OpenCase:
    """Open a case of this class, once for as long as one of the same matter is open.

    `matter` tells it from another of its class; by default the operation's id. With a task, it is written with the
    task's transition and its event `case.opened`.
    """

    class_name: str
    account: str
    payment_ref: str
    order_ref: str = ""
    operation_id: UUID | None = None
    amount_minor: int | None = None
    currency: str = ""
    why: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    matter: str = ""

    rank: ClassVar[int] = 50
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for row, part in wanted:  # one by one: cases are rare
            part.store(tenant_id=row.tenant_id, task_id=row.id, now=row.now)

    def store(self, *, tenant_id: UUID, task_id: UUID | None, now: datetime) -> UUID | None:
        """Insert it; its id, or None when one of the same matter is open. Needs a transaction of the caller's."""
        known = CLASSES[self.class_name]
        stored = rows.run(
            "INSERT INTO runtime_app_case (id, tenant_id, class_name, severity, state, blocks, account_id, order_ref,"
            " payment_ref, operation_id, task_id, amount_minor, currency, dedup_key, details, why, deadline_at,"
            " opened_at, closed_by, outcome, revision)"
            " VALUES (%s, %s, %s, %s, 'open', %s,"
            " (SELECT id FROM runtime_app_account WHERE tenant_id = %s AND ref = %s), %s, %s, %s, %s, %s, %s, %s, %s,"
            " %s, %s, %s, '', '', 1) ON CONFLICT (tenant_id, dedup_key) WHERE state = 'open' DO NOTHING RETURNING id",
            [new_id(), tenant_id, self.class_name, known.severity, known.blocks, tenant_id, self.account,
             self.order_ref, self.payment_ref, self.operation_id, task_id, self.amount_minor, self.currency,
             f"{self.class_name}:{self.matter or self.operation_id}"[:300], json.dumps(dict(self.details)),
             self.why[:500], now + timedelta(seconds=known.within), now],
        )
        if stored and self.operation_id is not None:
            rows.run(
                "UPDATE runtime_app_operation SET case_class = %s WHERE id = %s", [self.class_name, self.operation_id]
            )
        return stored[0][0] if stored else None


@dataclass(frozen=True, slots=True)
class CloseCases:
    """The operation's outcome is proved: what was open only for want of it is closed, with the outcome's word."""

    operation_id: UUID
    outcome: str

    rank: ClassVar[int] = 51
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        outcomes = {p.operation_id: (p.outcome, row.now) for row, p in wanted}
        found = rows.run(
            "SELECT id, tenant_id, operation_id FROM runtime_app_case WHERE operation_id = ANY(%s) AND state = 'open'"
            " AND class_name = ANY(%s) ORDER BY id FOR NO KEY UPDATE",
            [list(outcomes), sorted(BY_PROOF)],
        )
        for case_id, tenant_id, operation_id in found:
            outcome, now = outcomes[operation_id]
            close(case_id, tenant_id=tenant_id, outcome=outcome, actor="system", now=now)


def close(
    case_id: UUID, *, tenant_id: UUID, outcome: str, actor: str, now: datetime, person_id: int | None = None,
    data: Mapping[str, Any] | None = None, evidence_sha256: str = "",
) -> bool:
    """Close an open case and say so in its history; False when it is closed already. Needs the caller's transaction."""
    closed = rows.run(
        "UPDATE runtime_app_case SET state = 'closed', closed_at = %s, closed_by = %s, outcome = %s,"
        " revision = revision + 1 WHERE id = %s AND state = 'open' RETURNING id",
        [now, actor, outcome[:40], case_id],
    )
    if closed:
        add_entry(
            case_id, tenant_id=tenant_id, kind="closed", actor=actor, now=now, person_id=person_id,
            data={"outcome": outcome, **(data or {})}, evidence_sha256=evidence_sha256,
        )
    return bool(closed)


def add_entry(
    case_id: UUID, *, tenant_id: UUID, kind: str, actor: str, now: datetime, person_id: int | None = None,
    data: Mapping[str, Any] | None = None, evidence_sha256: str = "",
) -> UUID:
    """One line of the case's history."""
    id = new_id()
    rows.run(
        "INSERT INTO runtime_app_caseentry (id, tenant_id, case_id, kind, person_id, actor, evidence_sha256, data, at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        [id, tenant_id, case_id, kind, person_id, actor, evidence_sha256, json.dumps(dict(data or {})), now],
    )
    return id


@dataclass(frozen=True, slots=True)
class Unblocked:
    """Refuses as `case_open` while a case stops submissions on this payment or order."""

    order_ref: str
    payment_ref: str

    rank: ClassVar[int] = 7
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        stopped = blocking([(row.tenant_id, p.order_ref, p.payment_ref) for row, p in wanted])
        return {
            row.id: Refusal("case_open", {"class": stopped[row.tenant_id, p.order_ref, p.payment_ref]})
            for row, p in wanted if (row.tenant_id, p.order_ref, p.payment_ref) in stopped
        }

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None


Where = tuple[UUID, str, str]  # tenant, order reference, payment reference


def blocking(places: Sequence[Where]) -> dict[Where, str]:
    """The class of an open case that stops submissions there, for those places that have one."""
    if not places:
        return {}
    tenants, orders, payments = zip(*places, strict=True)
    found = rows.run(
        "SELECT w.tenant, w.orders, w.payment, min(c.class_name) FROM unnest(%s::uuid[], %s::text[], %s::text[])"
        " AS w(tenant, orders, payment) JOIN runtime_app_case c ON c.tenant_id = w.tenant AND c.state = 'open'"
        " AND c.blocks <> 'nothing' AND ((c.blocks = 'order' AND c.order_ref = w.orders)"
        " OR (c.payment_ref <> '' AND c.payment_ref = w.payment)) GROUP BY 1, 2, 3",
        [list(tenants), list(orders), list(payments)],
    )
    return {(r[0], r[1], r[2]): r[3] for r in found}
