"""That what was agreed on still is, judged in the very transaction that hands a request over for sending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self
from uuid import UUID

from runtime_app import access, rows
from runtime_app.transitions import Locked, Refusal
from runtime_app.workflows.refund.facts import RefundFacts


@dataclass(frozen=True, slots=True)
class StillAgreed:
    """Refuses as `not_agreed` when the tenant is suspended by now, its policy is another, or one of the approvers may
    no longer decide. The handler judged facts that were read before it waited for a thread and for the order system.
    """

    policy_version: int
    threshold_minor: int
    approvers: frozenset[int]

    rank: ClassVar[int] = 6
    survives: ClassVar[bool] = False

    @classmethod
    def of(cls, facts: RefundFacts) -> Self:
        approval = facts.approval
        return cls(
            facts.tenant.policy_version, facts.tenant.threshold_minor,
            approval.valid if approval is not None and approval.holds else frozenset(),
        )

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        tenants = {
            r[0]: (r[1], r[2])
            for r in rows.run(
                "SELECT id, policy_version, approval_threshold_minor FROM runtime_app_tenant WHERE id = ANY(%s)"
                " AND suspended_at IS NULL",
                [list({row.tenant_id for row, _ in wanted})],
            )
        }
        rights = access.rights_of({person for _, part in wanted for person in part.approvers})
        return {
            row.id: Refusal("not_agreed")
            for row, part in wanted
            if tenants.get(row.tenant_id) != (part.policy_version, part.threshold_minor)
            or any((person, row.tenant_id, "decide_approvals") not in rights for person in part.approvers)
        }

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None
