"""What a provider's answer shows of one operation: plain values in, a finding out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from runtime_app.adapters.payments.types import (
    Absent,
    FindResult,
    Found,
    Inconclusive,
    NoSuchRefund,
    ProviderRefund,
    RefundStatus,
)
from runtime_app.money import Money
from runtime_app.reconciliation.table import Finding

_NO_MONEY = frozenset({RefundStatus.FAILED, RefundStatus.CANCELED})


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for. `provider_ref`: what the provider has told us of it before."""

    payment_ref: str
    amount: Money
    provider_ref: str | None
    first_submit_at: datetime | None


@dataclass(frozen=True, slots=True)
class Reading:
    """`refund` is the one that the finding is about; `alive` all of ours whose money moved or may move."""

    finding: Finding
    refund: ProviderRefund | None = None
    alive: tuple[ProviderRefund, ...] = ()
    differs: str = ""  # amount | currency | payment
    alike: tuple[ProviderRefund, ...] = ()


def read(answer: FindResult | NoSuchRefund, asked: Asked) -> Reading:
    if isinstance(answer, Absent):
        if asked.provider_ref is not None:
            return Reading(Finding.INCONCLUSIVE)  # the provider has told us of it: not to see it proves nothing
        alike = tuple(refund for refund in answer.lookalikes if _is_alike(refund, asked))
        return Reading(Finding.LOOKALIKES if alike else Finding.ABSENT, alike=alike)
    if not isinstance(answer, Found):
        return Reading(Finding.INCONCLUSIVE)
    return read_found(answer.refunds, asked)


def read_found(refunds: tuple[ProviderRefund, ...], asked: Asked) -> Reading:
    """Of refunds that are ours: none of them is left out, and one that moved money speaks before one that may."""
    alive = tuple(r for r in refunds if r.status not in _NO_MONEY)
    moved = [r for r in alive if r.status == RefundStatus.SUCCEEDED]
    refund = (moved or alive or refunds)[0]
    if len(alive) > 1:
        return Reading(Finding.DUPLICATE, refund, alive, _differs(refund, asked))
    if differs := _differs(refund, asked):
        return Reading(Finding.MISMATCH, refund, alive, differs)
    if moved:
        return Reading(Finding.SUCCEEDED, refund, alive)
    return Reading(Finding.PENDING if alive else Finding.FAILED, refund, alive)


def not_anothers(
    answer: Found | NoSuchRefund | Inconclusive, operation_id: UUID
) -> Found | NoSuchRefund | Inconclusive:
    """The answer about a refund that was asked for by the provider's reference; one that names another operation of
    ours or of anybody's says nothing of this one."""
    if isinstance(answer, Found) and any(r.operation_ref not in (None, str(operation_id)) for r in answer.refunds):
        return Inconclusive("the refund of this reference names another operation", answer.seen)
    return answer


def _differs(refund: ProviderRefund, asked: Asked) -> str:
    if refund.payment_ref and refund.payment_ref != asked.payment_ref:  # a bank does not know which payment it was
        return "payment"
    if refund.amount.currency != asked.amount.currency:
        return "currency"
    return "amount" if refund.amount != asked.amount else ""


def listed(refunds: Iterable[ProviderRefund]) -> list[dict[str, Any]]:
    """Refunds as a case keeps them: plain values that a person reads and a decision is bound to."""
    return [
        {"ref": r.ref, "payment_ref": r.payment_ref, "amount_minor": r.amount.minor, "currency": r.amount.currency,
         "status": r.status.value} for r in refunds
    ]


MISMATCH_CLASS = {"payment": "PARENT_MISMATCH", "currency": "CURRENCY_MISMATCH", "amount": "AMOUNT_MISMATCH"}


def _is_alike(refund: ProviderRefund, asked: Asked) -> bool:
    """One without an id, of our amount, made after our first send: a suggestion for a person, never proof."""
    since, made = asked.first_submit_at, refund.created_at
    near = since is None or made is None or made >= since - timedelta(minutes=5)
    return refund.operation_ref is None and near and refund.amount == asked.amount
