"""What the refund handlers need from our own database, read for many tasks at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from runtime_app import access, ids, rows
from runtime_app.leases import Claimed
from runtime_app.states import OperationState, Status

EFFECT = "refund"


@dataclass(frozen=True, slots=True)
class TenantFacts:
    slug: str
    threshold_minor: int
    policy_version: int
    suspended: bool


@dataclass(frozen=True, slots=True)
class OperationFacts:
    id: UUID
    ordinal: int
    state: OperationState
    payment_ref: str
    amount_minor: int
    currency: str
    idempotency_key: str
    request_body: bytes
    request_sha256: str
    api_version: str
    fingerprint: str
    first_submit_at: datetime | None
    last_possible_send_at: datetime | None
    checks: int
    absents: int
    resends: int
    resend_disabled: bool
    case_class: str | None
    provider_ref: str | None
    last_evidence_id: UUID | None


@dataclass(frozen=True, slots=True)
class ApprovalFacts:
    """The given approval of the task's fingerprint; `valid` are its approvers who may still decide, by user id."""

    id: UUID
    fingerprint: str
    quorum: int
    policy_version: int
    given: tuple[tuple[int, str], ...]
    valid: frozenset[int]

    @property
    def holds(self) -> bool:
        return len(self.valid) >= self.quorum


@dataclass(frozen=True, slots=True)
class RefundFacts:
    task: Claimed
    tenant: TenantFacts
    balances: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # payment: (reserved, refunded)
    ours: frozenset[str] = frozenset()  # ids of our operations on the order
    operation: OperationFacts | None = None
    approval: ApprovalFacts | None = None

    @property
    def operation_id(self) -> UUID:
        """The id of the operation that this request makes, whether it is stored already or not."""
        task = self.task
        return ids.operation_id(
            tenant=self.tenant.slug, workflow=task.workflow, request_key=task.request_key, effect=EFFECT,
            ordinal=task.ordinal,
        )


def load(tasks: Sequence[Claimed]) -> Mapping[UUID, RefundFacts]:
    tenants = _tenants({t.tenant_id for t in tasks})
    balances, ours = _orders({(t.tenant_id, t.order_ref) for t in tasks})
    operations = _operations([t.id for t in tasks if t.status in _WITH_OPERATION])
    approvals = _approvals([t for t in tasks if t.status in _WITH_OPERATION])
    return {
        t.id: RefundFacts(
            task=t, tenant=tenants[t.tenant_id], balances=balances.get((t.tenant_id, t.order_ref), {}),
            ours=frozenset(ours.get((t.tenant_id, t.order_ref), ())), operation=operations.get(t.id),
            approval=approvals.get(t.id),
        )
        for t in tasks
    }


_WITH_OPERATION = frozenset({Status.READY, Status.EXECUTING, Status.RECONCILING})


def _tenants(ids: set[UUID]) -> dict[UUID, TenantFacts]:
    found = rows.run(
        "SELECT id, slug, approval_threshold_minor, policy_version, suspended_at IS NOT NULL FROM runtime_app_tenant"
        " WHERE id = ANY(%s)",
        [list(ids)],
    )
    return {r[0]: TenantFacts(*r[1:]) for r in found}


def _orders(
    orders: set[tuple[UUID, str]],
) -> tuple[dict[tuple[UUID, str], dict[str, tuple[int, int]]], dict[tuple[UUID, str], set[str]]]:
    wanted = [[o[0] for o in orders], [o[1] for o in orders]]
    balances: dict[tuple[UUID, str], dict[str, tuple[int, int]]] = defaultdict(dict)
    for tenant, order, payment, reserved, refunded in rows.run(
        "SELECT b.tenant_id, b.order_ref, b.payment_ref, b.reserved_minor, b.refunded_minor FROM runtime_app_balance b"
        " JOIN unnest(%s::uuid[], %s::text[]) AS w(tenant, ref) ON b.tenant_id = w.tenant AND b.order_ref = w.ref",
        wanted,
    ):
        balances[tenant, order][payment] = (reserved, refunded)
    ours: dict[tuple[UUID, str], set[str]] = defaultdict(set)
    for tenant, order, operation in rows.run(
        "SELECT t.tenant_id, t.order_ref, o.id FROM runtime_app_task t"
        " JOIN unnest(%s::uuid[], %s::text[]) AS w(tenant, ref) ON t.tenant_id = w.tenant AND t.order_ref = w.ref"
        " JOIN runtime_app_operation o ON o.task_id = t.id",
        wanted,
    ):
        ours[tenant, order].add(str(operation))
    return balances, ours


def payments_of(tenant_id: UUID, order_ref: str) -> tuple[Mapping[str, tuple[int, int]], frozenset[str]]:
    """One order's (reserved, refunded) by payment, and the ids of our operations on it."""
    balances, ours = _orders({(tenant_id, order_ref)})
    return balances.get((tenant_id, order_ref), {}), frozenset(ours.get((tenant_id, order_ref), ()))


def _operations(tasks: list[UUID]) -> dict[UUID, OperationFacts]:
    if not tasks:
        return {}
    found = rows.run(
        "SELECT DISTINCT ON (o.task_id) o.task_id, o.id, o.ordinal, o.state, o.payment_ref, o.amount_minor, o.currency,"
        " o.idempotency_key, o.request_body, o.request_sha256, o.api_version, o.fingerprint, o.first_submit_at,"
        " o.last_possible_send_at, o.checks, o.absents, o.resends, o.resend_disabled, o.case_class, o.provider_ref,"
        " (SELECT e.id FROM runtime_app_evidence e WHERE e.operation_id = o.id ORDER BY e.observed_at DESC LIMIT 1)"
        " FROM runtime_app_operation o JOIN runtime_app_task t ON t.id = o.task_id AND t.ordinal = o.ordinal"
        " WHERE o.task_id = ANY(%s) ORDER BY o.task_id, o.ordinal DESC",
        [tasks],
    )
    return {r[0]: OperationFacts(*_typed(r[1:])) for r in found}


def _typed(row: rows.Row) -> list[Any]:
    values = list(row)
    values[2] = OperationState(values[2])
    values[7] = bytes(values[7])
    return values


def _approvals(tasks: list[Claimed]) -> dict[UUID, ApprovalFacts]:
    if not tasks:
        return {}
    by_id = {t.id: t for t in tasks}
    found = rows.run(
        "SELECT a.task_id, a.id, a.fingerprint, a.quorum, a.policy_version,"
        " array_agg(d.person_id ORDER BY d.decided_at), array_agg(u.username ORDER BY d.decided_at)"
        " FROM approvals_approval a JOIN approvals_decision d ON d.approval_id = a.id AND d.verdict = 'approve'"
        " JOIN runtime_app_user u ON u.id = d.person_id"
        " WHERE a.task_id = ANY(%s) AND a.state = 'approved' GROUP BY a.id",
        [list(by_id)],
    )
    rights = access.rights_of({person for r in found for person in r[5]})
    approvals = {}
    for task_id, id, fingerprint, quorum, policy_version, people, names in found:
        task = by_id[task_id]
        valid = frozenset(
            p for p in people if (p, task.tenant_id, "decide_approvals") in rights and p != task.requester_id
            and p not in task.state.get("shaped_by", ())
        )
        approvals[task_id] = ApprovalFacts(
            id, fingerprint, quorum, policy_version, tuple(zip(people, names, strict=True)), valid
        )
    return approvals
