"""What the refund handlers need from our own database, read for many tasks at once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from approvals.counting import Vote, missing
from approvals.given import Given, count, of_tasks, parties
from approvals.in_force import COLUMNS, JOIN, InForce
from runtime_app import accounts, ids, rows
from runtime_app.adapters.payments.types import ProviderAccount
from runtime_app.leases import Claimed
from runtime_app.ledger.explained import EXPLAINED
from runtime_app.states import UNRESOLVED, OperationState, Status

EFFECT = "refund"
_IN_DOUBT = "(" + ", ".join(f"'{state}'" for state in sorted(UNRESOLVED)) + ")"


@dataclass(frozen=True, slots=True)
class TenantFacts:
    slug: str
    suspended: bool
    policy: InForce


@dataclass(frozen=True, slots=True)
class OperationFacts:
    id: UUID
    ordinal: int
    account: str
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
    order_ref: str


@dataclass(frozen=True, slots=True)
class ApprovalFacts:
    """The given approval of the task's fingerprint, and of its votes those that count with what people hold now."""

    given: Given
    votes: tuple[Vote, ...]

    @property
    def holds(self) -> bool:
        return not missing(self.given.rules, self.votes)


@dataclass(frozen=True, slots=True)
class BalanceFacts:
    """Of one payment at one account. `external_provider_minor`: refunds outside of us that the provider has shown so
    far. `elsewhere_minor`: what we have reserved and refunded of the same payment under other accounts."""

    reserved_minor: int = 0
    refunded_minor: int = 0
    external_provider_minor: int = 0
    in_doubt: bool = False  # an operation of it is not resolved
    elsewhere_minor: int = 0
    explained: Mapping[str, int] = field(default_factory=dict)  # a disagreement that a person has said is right


Balances = Mapping[str, Mapping[str, BalanceFacts]]  # by payment, then by account; the one that was read last first


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """An open case of the operation, and what a person has asked for there (`asked`: query | attach)."""

    id: UUID
    class_name: str
    asked: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RefundFacts:
    task: Claimed
    tenant: TenantFacts
    accounts: Mapping[str, ProviderAccount] = field(default_factory=dict)
    balances: Balances = field(default_factory=dict)
    ours: frozenset[str] = frozenset()  # ids of our operations on the order
    operation: OperationFacts | None = None
    approval: ApprovalFacts | None = None
    cases: tuple[CaseFacts, ...] = ()  # open ones of the operation

    def balance(self, account: str, payment_ref: str) -> BalanceFacts:
        return balance_of(self.balances, account, payment_ref)

    @property
    def account(self) -> ProviderAccount:
        """The account that the operation was made for."""
        assert self.operation is not None  # asked only of what was handed over
        return self.accounts[self.operation.account]

    @property
    def operation_id(self) -> UUID:
        """The id of the operation that this request makes, whether it is stored already or not."""
        task = self.task
        return ids.operation_id(
            tenant=self.tenant.slug, workflow=task.workflow, request_key=task.request_key, effect=EFFECT,
            ordinal=task.ordinal,
        )


def balance_of(balances: Balances, account: str, payment_ref: str) -> BalanceFacts:
    """What is known of the payment at this account, and what of it was taken under others."""
    known = balances.get(payment_ref, {})
    others = sum(b.reserved_minor + b.refunded_minor for name, b in known.items() if name != account)
    return replace(known.get(account, BalanceFacts()), elsewhere_minor=others)


def load(tasks: Sequence[Claimed]) -> Mapping[UUID, RefundFacts]:
    tenants = _tenants({t.tenant_id for t in tasks})
    held = accounts.of_tenants(tenants)
    balances, ours = _orders({(t.tenant_id, t.order_ref) for t in tasks})
    operations = _operations([t.id for t in tasks if t.status in _WITH_OPERATION])
    cases = _cases([t.id for t in tasks if t.status == Status.RECONCILING])
    approvals = _approvals([t for t in tasks if t.status in _WITH_OPERATION])
    return {
        t.id: RefundFacts(
            task=t, tenant=tenants[t.tenant_id], accounts=held.get(t.tenant_id, {}), cases=cases.get(t.id, ()),
            balances=balances.get((t.tenant_id, t.order_ref), {}),
            ours=frozenset(ours.get((t.tenant_id, t.order_ref), ())), operation=operations.get(t.id),
            approval=approvals.get(t.id),
        )
        for t in tasks
    }


_WITH_OPERATION = frozenset({Status.READY, Status.EXECUTING, Status.RECONCILING})


def _tenants(ids: set[UUID]) -> dict[UUID, TenantFacts]:
    found = rows.run(
        f"SELECT t.id, t.slug, t.suspended_at IS NOT NULL, {COLUMNS} FROM runtime_app_tenant t{JOIN}"
        " WHERE t.id = ANY(%s)",
        ["refund", list(ids)],
    )
    return {r[0]: TenantFacts(r[1], r[2], InForce(*r[3:])) for r in found}


def _orders(
    orders: set[tuple[UUID, str]],
) -> tuple[dict[tuple[UUID, str], dict[str, dict[str, BalanceFacts]]], dict[tuple[UUID, str], set[str]]]:
    wanted = [[o[0] for o in orders], [o[1] for o in orders]]
    balances: dict[tuple[UUID, str], dict[str, dict[str, BalanceFacts]]] = defaultdict(dict)
    for tenant, order, payment, account, reserved, refunded, external, in_doubt, explained in rows.run(
        "SELECT b.tenant_id, b.order_ref, b.payment_ref, b.account, b.reserved_minor, b.refunded_minor,"
        " b.external_provider_minor,"
        f" EXISTS (SELECT 1 FROM runtime_app_operation o WHERE o.tenant_id = b.tenant_id AND o.account = b.account"
        f" AND o.payment_ref = b.payment_ref AND o.state IN {_IN_DOUBT}), {EXPLAINED} FROM runtime_app_balance b"
        " JOIN unnest(%s::uuid[], %s::text[]) AS w(tenant, ref) ON b.tenant_id = w.tenant AND b.order_ref = w.ref"
        " ORDER BY b.read_at DESC, b.id",
        wanted,
    ):
        balances[tenant, order].setdefault(payment, {})[account] = BalanceFacts(
            reserved, refunded, external, in_doubt, explained=json.loads(explained) if explained else {}
        )
    ours: dict[tuple[UUID, str], set[str]] = defaultdict(set)
    for tenant, order, operation in rows.run(
        "SELECT t.tenant_id, t.order_ref, o.id FROM runtime_app_task t"
        " JOIN unnest(%s::uuid[], %s::text[]) AS w(tenant, ref) ON t.tenant_id = w.tenant AND t.order_ref = w.ref"
        " JOIN runtime_app_operation o ON o.task_id = t.id",
        wanted,
    ):
        ours[tenant, order].add(str(operation))
    return balances, ours


def payments_of(tenant_id: UUID, order_ref: str) -> tuple[Balances, frozenset[str]]:
    """One order's figures by payment, and the ids of our operations on it."""
    balances, ours = _orders({(tenant_id, order_ref)})
    return balances.get((tenant_id, order_ref), {}), frozenset(ours.get((tenant_id, order_ref), ()))


def _operations(tasks: list[UUID]) -> dict[UUID, OperationFacts]:
    if not tasks:
        return {}
    found = rows.run(
        "SELECT DISTINCT ON (o.task_id) o.task_id, o.id, o.ordinal, o.account, o.state, o.payment_ref, o.amount_minor,"
        " o.currency, o.idempotency_key, o.request_body, o.request_sha256, o.api_version, o.fingerprint,"
        " o.first_submit_at, o.last_possible_send_at, o.checks, o.absents, o.resends, o.resend_disabled, o.case_class,"
        " o.provider_ref, o.order_ref"
        " FROM runtime_app_operation o JOIN runtime_app_task t ON t.id = o.task_id AND t.ordinal = o.ordinal"
        " WHERE o.task_id = ANY(%s) ORDER BY o.task_id, o.ordinal DESC",
        [tasks],
    )
    return {r[0]: OperationFacts(*_typed(r[1:])) for r in found}


def _typed(row: rows.Row) -> list[Any]:
    values = list(row)
    values[3] = OperationState(values[3])
    values[8] = bytes(values[8])
    return values


def _cases(tasks: list[UUID]) -> dict[UUID, tuple[CaseFacts, ...]]:
    if not tasks:
        return {}
    found: dict[UUID, tuple[CaseFacts, ...]] = {}
    for task_id, id, class_name, asked in rows.run(
        # What a person asked for last counts until the worker has answered it.
        "SELECT c.task_id, c.id, c.class_name, coalesce((SELECT CASE e.kind WHEN 'asked' THEN e.data END"
        " FROM runtime_app_caseentry e WHERE e.case_id = c.id AND e.kind IN ('asked', 'answered')"
        " ORDER BY e.at DESC, e.id DESC LIMIT 1), '{}')"
        " FROM runtime_app_case c WHERE c.task_id = ANY(%s) AND c.state = 'open' ORDER BY c.opened_at, c.id",
        [tasks],
    ):
        found[task_id] = (*found.get(task_id, ()), CaseFacts(id, class_name, json.loads(asked)))
    return found


def _approvals(tasks: list[Claimed]) -> dict[UUID, ApprovalFacts]:
    if not tasks:
        return {}
    given = of_tasks({t.id: parties(t.requester_id, t.state) for t in tasks})
    counted = count(given.values())
    return {id: ApprovalFacts(one, counted[one.id]) for id, one in given.items()}
