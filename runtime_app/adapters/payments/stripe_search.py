"""Finding our refund among all refunds of a payment, and proving that it is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runtime_app.adapters.payments.stripe_evidence import Answer, Garbled, read_refund, why
from runtime_app.adapters.payments.types import (
    Absent,
    FindResult,
    Found,
    Inconclusive,
    Observation,
    PaymentSnapshot,
    ProviderRefund,
    RefundStatus,
)

PAGES_MOST = 200
_NOT_MONEY = (RefundStatus.FAILED, RefundStatus.CANCELED)


def find_refunds(
    page: Callable[[str | None], Answer], payment: Callable[[], PaymentSnapshot | Inconclusive], *,
    operation_ref: str, payment_ref: str, currency: str,
) -> FindResult:
    """Absent only when every page was read and the refunds listed add up to what the payment says was refunded."""
    listed, seen, trouble = _read_all(page, payment_ref)
    if trouble:
        return Inconclusive(trouble, replace(seen, complete=False))
    ours = tuple(refund for refund in listed if refund.operation_ref == operation_ref)
    if ours:
        return Found(ours, seen)
    total = payment()
    if isinstance(total, Inconclusive):
        return Inconclusive(f"the payment's total: {total.cause}", replace(seen, complete=False))
    moved = [refund for refund in listed if refund.status not in _NOT_MONEY]
    if total.captured.currency != currency or any(refund.amount.currency != currency for refund in moved):
        return Inconclusive("another currency than ours", seen)
    if sum(refund.amount.minor for refund in moved) != total.refunded.minor:
        return Inconclusive("the refunds listed do not add up to the payment's total", replace(seen, complete=False))
    seen = replace(seen, body={"list": seen.body, "payment": total.seen.body})
    return Absent(seen, tuple(refund for refund in moved if refund.operation_ref is None))


def _read_all(
    page: Callable[[str | None], Answer], payment_ref: str
) -> tuple[list[ProviderRefund], Observation, str | None]:
    """Every refund, the last page's observation, and what went wrong."""
    listed: dict[str, ProviderRefund] = {}
    after: str | None = None
    for number in range(1, PAGES_MOST + 1):
        answer = page(after)
        seen = replace(answer.seen, pages=number)
        if answer.ok is None:
            return [], seen, why(answer)
        data, more = answer.ok.get("data"), answer.ok.get("has_more")
        if answer.ok.get("object") != "list" or not isinstance(data, list) or not isinstance(more, bool):
            return [], seen, "a 200 that is no list"
        try:
            refunds = [read_refund(one) for one in data]
        except Garbled as garbled:
            return [], seen, f"a refund that cannot be read: {garbled}"
        if any(refund.payment_ref != payment_ref for refund in refunds):
            return [], seen, "a refund of another payment in the list"
        if len(listed.keys() | {r.ref for r in refunds}) != len(listed) + len(refunds) or (more and not refunds):
            return [], seen, "pages that do not follow each other"
        listed.update((refund.ref, refund) for refund in refunds)
        if not more:
            return list(listed.values()), seen, None
        after = refunds[-1].ref
    return [], seen, "more pages than can be right"
