"""A person names the provider's refund: it is accepted only after the provider itself shows that it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.adapters.payments.types import Found, ProviderRefund
from runtime_app.chronicle import Say
from runtime_app.ledger.calls import EndCall
from runtime_app.ledger.cases import add_entry
from runtime_app.reconciliation.reading import Asked, Reading, read_found
from runtime_app.reconciliation.table import Finding
from runtime_app.transitions import Locked, Refusal, Transition
from runtime_app.workflows.refund.facts import CaseFacts, RefundFacts


def wanted(facts: RefundFacts) -> tuple[CaseFacts, str] | None:
    """The case in which somebody has named a refund, and its reference."""
    for case in facts.cases:
        if case.asked.get("what") == "attach":
            return case, str(case.asked["ref"])
    return None


def judge(answer: object, asked: Asked, operation_id: UUID) -> tuple[Reading, str]:
    """What the named refund shows, and why it does not fit; an empty text when it does."""
    if not isinstance(answer, Found):
        return Reading(Finding.INCONCLUSIVE), "The provider has no such refund, or does not answer."
    refund: ProviderRefund = answer.refunds[0]
    if refund.operation_ref not in (None, str(operation_id)):
        return Reading(Finding.INCONCLUSIVE), "This refund names another operation."
    seen = read_found((refund,), asked)
    if seen.finding == Finding.MISMATCH:
        return seen, f"This refund differs in its {seen.differs}."
    if seen.finding not in {Finding.SUCCEEDED, Finding.PENDING}:
        return seen, f"This refund is {refund.status.value} at the provider."
    return seen, ""


def accepted(transition: Transition, ref: str, operation_id: UUID, refused: Transition) -> Transition:
    """The transition that follows, unless another operation owns the refund."""
    free = RefIsFree(operation_id, ref)
    return replace(
        transition, parts=(free, *transition.parts), if_refused={**transition.if_refused, "ref_taken": refused}
    )


def refusal(case: CaseFacts, why: str, end: EndCall) -> Transition:
    """Nothing changes but what is known: the named refund is not ours."""
    return Transition(
        events=(Say("case.answered", {"class": case.class_name, "says": why}),),
        parts=(end, Answer(case.id, why)), due=None, starts=0,
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person asked for in a case has been done; `says` is what came of it."""

    case_id: UUID
    says: str
    refunds: Sequence[Mapping[str, Any]] | None = None  # as the look showed them; None: it showed nothing for sure

    rank: ClassVar[int] = 52
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for row, part in wanted:
            add_entry(
                part.case_id, tenant_id=row.tenant_id, kind="answered", actor="system", now=row.now,
                data={"says": part.says} | ({} if part.refunds is None else {"refunds": list(part.refunds)}),
            )


@dataclass(frozen=True, slots=True)
class RefIsFree:
    """Refuses as `ref_taken` when another operation of the account owns this provider's reference."""

    operation_id: UUID
    ref: str

    rank: ClassVar[int] = 8
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        taken: dict[UUID, Refusal] = {}
        for row, part in wanted:
            found: list[Any] = rows.run(
                "SELECT 1 FROM runtime_app_operation o JOIN runtime_app_operation mine ON mine.id = %s"
                " WHERE o.tenant_id = mine.tenant_id AND o.account = mine.account AND o.provider_ref = %s"
                " AND o.id <> mine.id",
                [part.operation_id, part.ref],
            )
            if found:
                taken[row.id] = Refusal("ref_taken")
        return taken

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None
