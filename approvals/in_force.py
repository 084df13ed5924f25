"""The rules that hold in a tenant now: its policy in force, or what is built in where it has none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from approvals.rules import Rules, built_in
from approvals.rules_json import load
from runtime_app import rows

# Of tenant `t` and one workflow: the id, number and rules of its policy in force.
JOIN = (
    " LEFT JOIN approvals_policy p ON p.tenant_id = t.id AND p.workflow = %s AND p.state = 'in_force'"
)
COLUMNS = "p.id, coalesce(p.number, t.policy_version), p.rules::text, t.approval_threshold_minor, t.time_zone"


@dataclass(frozen=True, slots=True)
class InForce:
    """`policy_id` is None for what is built in; `said` is the policy's own text."""

    policy_id: UUID | None
    number: int
    said: str | None
    threshold_minor: int
    time_zone: str

    def rules(self, deadline: float) -> Rules:
        """`deadline` in seconds is what is built in for tenants without a policy."""
        return built_in(self.threshold_minor, deadline) if self.said is None else _loaded(self.said)


@lru_cache(maxsize=256)
def _loaded(said: str) -> Rules:
    return load(json.loads(said))


def in_force(tenants: Iterable[UUID], workflow: str) -> dict[UUID, InForce]:
    found = rows.run(
        f"SELECT t.id, {COLUMNS} FROM runtime_app_tenant t{JOIN} WHERE t.id = ANY(%s)", [workflow, list(tenants)]
    )
    return {row[0]: InForce(*row[1:]) for row in found}
