"""Stripe's lists: one page of anything, all refunds of a payment, and one page of an account's refunds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from runtime_app.adapters.payments.stripe_evidence import Answer, why
from runtime_app.adapters.payments.stripe_objects import Garbled, read_refund
from runtime_app.adapters.payments.types import Inconclusive, Observation, ProviderRefund, RefundPage

PAGES_MOST = 200
PAGE_SIZE = 100
Page = Callable[[str | None], Answer]  # from the last id of the page before, or None, to a page


@dataclass(frozen=True, slots=True)
class Entries:
    data: list[Any]
    more: bool


def read_entries(answer: Answer) -> Entries | str:
    """A page's entries, unread, or why there is no page."""
    if answer.ok is None:
        return why(answer)
    data, more = answer.ok.get("data"), answer.ok.get("has_more")
    if answer.ok.get("object") != "list" or not isinstance(data, list) or not isinstance(more, bool):
        return "a 200 that is no list"
    if more and not data:
        return "pages that do not follow each other"
    return Entries(data, more)


def all_refunds(page: Page, payment_ref: str) -> tuple[list[ProviderRefund], Observation, str | None]:
    """Every refund of a payment, the last page's observation, and what went wrong."""
    listed: dict[str, ProviderRefund] = {}
    after: str | None = None
    for number in range(1, PAGES_MOST + 1):
        answer = page(after)
        seen, entries = replace(answer.seen, pages=number), read_entries(answer)
        if isinstance(entries, str):
            return [], seen, entries
        refunds = _of_payment(entries.data, payment_ref)
        if isinstance(refunds, str):
            return [], seen, refunds
        if len(listed.keys() | {r.ref for r in refunds}) != len(listed) + len(refunds):
            return [], seen, "pages that do not follow each other"
        listed.update((refund.ref, refund) for refund in refunds)
        if not entries.more:
            return list(listed.values()), seen, None
        after = refunds[-1].ref
    return [], seen, "more pages than can be right"


def _of_payment(data: list[Any], payment_ref: str) -> list[ProviderRefund] | str:
    try:
        refunds = [read_refund(one, payment_ref) for one in data]
    except Garbled as garbled:
        return f"a refund that cannot be read: {garbled}"
    if any(refund.payment_ref != payment_ref for refund in refunds):
        return "a refund of another payment in the list"
    return refunds


def refund_page(
    answer: Answer, *, payment_ref: str | None, since: datetime | None, cursor: str | None
) -> RefundPage | Inconclusive:
    """One page of refunds. The account's own list may hold some that have no payment, or a currency that we do not
    know: those that do not carry an operation's id are left out, and the page says that it is not complete.
    """
    entries = read_entries(answer)
    refunds = entries if isinstance(entries, str) else (
        _of_account(entries.data) if payment_ref is None else _of_payment(entries.data, payment_ref))
    if isinstance(entries, str) or isinstance(refunds, str):
        return Inconclusive(str(refunds), replace(answer.seen, complete=False))
    last = entries.data[-1].get("id") if entries.data else None
    if entries.more and (not isinstance(last, str) or last == cursor):
        return Inconclusive("pages that do not follow each other", replace(answer.seen, complete=False))
    past = bool(refunds) and since is not None and _before(refunds[-1], since)
    return RefundPage(
        tuple(refund for refund in refunds if since is None or not _before(refund, since)),
        last if entries.more and not past else None,
        replace(answer.seen, complete=len(refunds) == len(entries.data)),
    )


def _of_account(data: list[Any]) -> list[ProviderRefund] | str:
    refunds = []
    for one in data:
        try:
            refunds.append(read_refund(one))
        except Garbled as garbled:
            metadata = one.get("metadata") if isinstance(one, dict) else None
            if not isinstance(metadata, dict) or "operation_id" in metadata:
                return f"a refund that cannot be read: {garbled}"
    return refunds


def _before(refund: ProviderRefund, since: datetime) -> bool:
    return refund.created_at is not None and refund.created_at < since
