"""Finding our refund among all refunds of a payment, and proving that it is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from runtime_app.adapters.payments.stripe_events import ByKey, NoSuchEvent
from runtime_app.adapters.payments.stripe_lists import Page, all_refunds
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

_NOT_MONEY = (RefundStatus.FAILED, RefundStatus.CANCELED)


def find_refunds(
    page: Page, payment: Callable[[], PaymentSnapshot | Inconclusive], by_key: ByKey, *,
    operation_ref: str, payment_ref: str, currency: str,
) -> FindResult:
    """Absent only when every page was read and the refunds listed add up to what the payment says was refunded.

    A refund that lost its metadata is ours when an event says that our key made it.
    """
    listed, seen, trouble = all_refunds(page, payment_ref)
    if trouble:
        return Inconclusive(trouble, replace(seen, complete=False))
    ours = tuple(refund for refund in listed if refund.operation_ref == operation_ref)
    if ours:
        return Found(ours, seen)
    nameless = [refund for refund in listed if refund.operation_ref is None]
    made = by_key(nameless) if nameless else NoSuchEvent()
    if isinstance(made, Inconclusive):
        return Inconclusive(f"the events by key: {made.cause}", replace(made.seen, complete=False))
    if not isinstance(made, NoSuchEvent):
        named = tuple(replace(refund, operation_ref=operation_ref) for refund in nameless if refund.ref in made.refs)
        return Found(named, replace(seen, body={"list": seen.body, "events": made.seen.body}))
    return _absent(listed, seen, payment(), currency)


def _absent(
    listed: Sequence[ProviderRefund], seen: Observation, total: PaymentSnapshot | Inconclusive, currency: str
) -> Absent | Inconclusive:
    if isinstance(total, Inconclusive):
        return Inconclusive(f"the payment's total: {total.cause}", replace(seen, complete=False))
    moved = [refund for refund in listed if refund.status not in _NOT_MONEY]
    if total.captured.currency != currency or any(refund.amount.currency != currency for refund in moved):
        return Inconclusive("another currency than ours", seen)
    if sum(refund.amount.minor for refund in moved) != total.refunded.minor:
        return Inconclusive("the refunds listed do not add up to the payment's total", replace(seen, complete=False))
    seen = replace(seen, body={"list": seen.body, "payment": total.seen.body})
    return Absent(seen, tuple(refund for refund in moved if refund.operation_ref is None))
