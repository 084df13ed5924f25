"""Finding our payment at the bank by its EndToEndId, and proving that the bank never had it."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from runtime_app.adapters.payments.bank_client import Answer, BankCalls, observed
from runtime_app.adapters.payments.bank_evidence import Garbled, read_payment
from runtime_app.adapters.payments.types import (
    Absent,
    Deadline,
    FindResult,
    Found,
    Inconclusive,
    NoSuchRefund,
    ProviderAccount,
    ProviderRefund,
)

_KEPT = ("id", "end_to_end_id", "amount", "currency", "status", "reason", "settlement_date", "booked_at", "return_due",
         "return_reason", "returned_at", "msg_id", "received_at", "error")


def find_by_id(
    calls: BankCalls, account: ProviderAccount, end_to_end_id: str, payment_ref: str, deadline: Deadline
) -> FindResult:
    """All payments with this EndToEndId, oldest first: a bank pays a second one under another MsgId."""
    answer = _look(calls, account, end_to_end_id, deadline)
    if answer.exchange.status == 404 and _is_missing(answer, end_to_end_id):
        return Absent(answer.seen)
    if answer.exchange.status != 200 or not isinstance(answer.value, list) or not answer.value:
        return Inconclusive(answer.why, replace(answer.seen, complete=False))
    try:
        refunds = [read_payment(one, end_to_end_id, payment_ref) for one in answer.value]
    except Garbled as garbled:
        return Inconclusive(f"an answer that cannot be read: {garbled}", replace(answer.seen, complete=False))
    return Found(_numbered([one["id"] for one in answer.value], refunds), answer.seen)


def retrieve(
    calls: BankCalls, account: ProviderAccount, refund_ref: str, deadline: Deadline
) -> Found | NoSuchRefund | Inconclusive:
    """One payment by the reference that a look-up gave it."""
    end_to_end_id = refund_ref.partition("#")[0]
    if end_to_end_id in ("", ".", ".."):  # these would lead to another place than a payment
        return Inconclusive("this is no reference of a payment", observed("(nothing asked)", None))
    found = find_by_id(calls, account, end_to_end_id, "", deadline)
    if isinstance(found, Found):
        named = tuple(refund for refund in found.refunds if refund.ref == refund_ref)
        return Found(named, found.seen) if named else NoSuchRefund(found.seen)
    return NoSuchRefund(found.seen) if isinstance(found, Absent) else found


def _look(calls: BankCalls, account: ProviderAccount, end_to_end_id: str, deadline: Deadline) -> Answer:
    # mock-bank books what is due when its mailbox is looked at, and not when it is asked for a payment. No message is
    # of this type, so nothing is taken; what the answer is does not matter.
    calls.ask(account, "mailbox", "/_mock/mailbox?leave&type=none", deadline=deadline)
    path = f"/_mock/payments/{quote(end_to_end_id, safe='', errors='replace')}?all"
    return calls.ask(account, "find", path, deadline=deadline, kept=_KEPT)


def _is_missing(answer: Answer, end_to_end_id: str) -> bool:
    """The bank itself says that it has no payment of this id: its words, and the id in them."""
    said = answer.error or ""
    return said.startswith("no payment with EndToEndId") and end_to_end_id in said


def _numbered(numbers: list[int], refunds: list[ProviderRefund]) -> tuple[ProviderRefund, ...]:
    """The first keeps the EndToEndId as its reference; each further one gets the bank's number behind a #."""
    ordered = sorted(zip(numbers, refunds, strict=True), key=lambda one: one[0])
    return tuple(
        replace(refund, ref=f"{refund.ref}#{number}") if place else refund
        for place, (number, refund) in enumerate(ordered)
    )
