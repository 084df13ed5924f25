"""That what was agreed on still is, judged in the very transaction that hands a request over for sending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self
from uuid import UUID

from approvals.counting import missing
from approvals.given import Given, count
from approvals.in_force import COLUMNS, JOIN, InForce
from runtime_app import rows
from runtime_app.transitions import Locked, Refusal
from runtime_app.workflows.refund.facts import RefundFacts


@dataclass(frozen=True, slots=True)
class StillAgreed:
    """Refuses as `not_agreed` when the tenant is suspended by now, its rules are others, or the votes that count are
    too few. The handler judged facts that were read before it waited for a thread and for the order system.
    """

    policy: InForce
    given: Given | None

    rank: ClassVar[int] = 6
    survives: ClassVar[bool] = False

    @classmethod
    def of(cls, facts: RefundFacts) -> Self:
        approval = facts.approval
        return cls(facts.tenant.policy, approval.given if approval is not None and approval.holds else None)

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        held = {
            row[0]: InForce(*row[1:])
            for row in rows.run(
                f"SELECT t.id, {COLUMNS} FROM runtime_app_tenant t{JOIN} WHERE t.id = ANY(%s)"
                " AND t.suspended_at IS NULL",
                ["refund", list({row.tenant_id for row, _ in wanted})],
            )
        }
        counted = count(part.given for _, part in wanted if part.given is not None)
        return {
            row.id: Refusal("not_agreed")
            for row, part in wanted
            if held.get(row.tenant_id) != part.policy
            or (part.given is not None and missing(part.given.rules, counted[part.given.id]))
        }

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None
