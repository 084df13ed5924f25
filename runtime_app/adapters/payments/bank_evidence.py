"""What a bank's answer proves about a payment file: answers become results here, by evidence alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from runtime_app.adapters.payments.bank_client import Answer, cut
from runtime_app.adapters.payments.bank_pain import operation_ref, our_id
from runtime_app.adapters.payments.types import (
    CreateResult,
    Declined,
    Mismatch,
    NotSent,
    OutcomeUnknown,
    Pending,
    ProviderRefund,
    RefundRequest,
    RefundStatus,
    Throttled,
)
from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors
from runtime_app.money import Money

KEPT = ("msg_id", "status", "reason", "reason_text", "reported", "payments", "end_to_end_id", "outcome", "amount",
        "currency", "settlement_date", "booked", "error", "type")
# What a bank says of a payment that it took: done is only what it booked, and it says that elsewhere.
_TAKEN = ("accepted", "pending")


class Garbled(ValueError):
    """A payment lacks what every payment has, or holds something impossible."""


def judge_create(answer: Answer, request: RefundRequest, *, resend: bool) -> CreateResult:
    """The result of sending the file; `resend` says that it may have been sent before."""
    seen, status = answer.seen, answer.exchange.status
    if status is None:
        untouched = answer.exchange.untouched
        return NotSent(answer.exchange.cause, seen) if untouched else OutcomeUnknown("no_answer", answer.why, seen)
    if status == 202:
        return _judge_taken(answer, request, resend=resend)
    if status == 422:
        return _judge_refused(answer, request, resend=resend)
    if answer.error is not None and status in (401, 403):
        return NotSent(f"{status} {cut(answer.error)}", seen)
    if answer.error is not None and status == 429:
        return Throttled(_seconds(answer.exchange.headers.get("Retry-After")), seen)
    return OutcomeUnknown("answer", answer.why, seen)


def _judge_taken(answer: Answer, request: RefundRequest, *, resend: bool) -> CreateResult:
    seen, ours = answer.seen, our_id(request.operation_id)
    payments = answer.fields.get("payments")
    mine = payments[0] if isinstance(payments, list) and len(payments) == 1 else None
    if answer.fields.get("msg_id") != ours or not isinstance(mine, dict) or mine.get("end_to_end_id") != ours:
        return OutcomeUnknown("answer", "a 202 that does not name our one payment", seen)
    try:
        amount, outcome = read_amount(mine), mine.get("outcome")
    except Garbled as garbled:
        return OutcomeUnknown("answer", f"a 202 that cannot be read: {garbled}", seen)
    code = _code(mine.get("reason"))
    if outcome not in (*_TAKEN, "rejected") or (outcome == "rejected" and code is None):
        return OutcomeUnknown("answer", "a 202 that does not say what became of the payment", seen)
    status = RefundStatus.PENDING if outcome in _TAKEN else RefundStatus.FAILED
    refund = ProviderRefund(
        ours, str(request.operation_id), request.payment_ref, amount, status, code if outcome == "rejected" else None
    )
    if differs := differences(amount, request.amount):
        return Mismatch(refund, differs, seen)
    if outcome in _TAKEN:
        return Pending(refund, seen)
    return OutcomeUnknown("resend", code or "", seen) if resend else Declined(code or "", seen, refund)


def _judge_refused(answer: Answer, request: RefundRequest, *, resend: bool) -> CreateResult:
    """A file refused as a whole. Only the bank's own words count: anybody on the way can say 422."""
    seen, code = answer.seen, _code(answer.fields.get("reason"))
    about = answer.fields.get("msg_id", "")
    if answer.fields.get("status") != "RJCT" or code is None or about not in (our_id(request.operation_id), None):
        return OutcomeUnknown("answer", "a 422 that does not refuse our file", seen)
    if code == "DUPL":  # it has the file already, so this operation was sent before, and may have been paid
        return OutcomeUnknown("duplicate", code, seen)
    return OutcomeUnknown("resend", code, seen) if resend else Declined(code, seen)


def differences(found: Money, wanted: Money) -> tuple[str, ...]:
    return tuple(name for name, equal in (
        ("amount", found.minor == wanted.minor), ("currency", found.currency == wanted.currency),
    ) if not equal)


def read_payment(value: object, end_to_end_id: str, payment_ref: str) -> ProviderRefund:
    """A payment as the bank tells it when asked, or Garbled. Its reference is the EndToEndId, which a bank may have
    twice; the caller numbers those. What was refunded by it the bank does not know: `payment_ref` is the caller's.
    """
    if not isinstance(value, dict) or value.get("end_to_end_id") != end_to_end_id:
        raise Garbled("a payment with another id")
    if not isinstance(value.get("id"), int) or isinstance(value["id"], bool):
        raise Garbled("a payment that has no number at the bank")
    status, reason = _status(value)
    if status is RefundStatus.FAILED and reason is None:
        raise Garbled("a payment that failed for no reason")
    return ProviderRefund(
        end_to_end_id, operation_ref(end_to_end_id), payment_ref, read_amount(value), status, reason,
        _instant(value.get("received_at")),
    )


def _status(payment: dict[str, Any]) -> tuple[RefundStatus, str | None]:
    told, booked = payment.get("status"), payment.get("booked_at", "")
    if told == "accepted" and booked is None:
        return RefundStatus.PENDING, None
    if told == "accepted" and isinstance(booked, str) and booked:
        return RefundStatus.SUCCEEDED, None
    if told == "rejected":
        return RefundStatus.FAILED, _code(payment.get("reason"))
    if told == "returned":
        return RefundStatus.FAILED, _code(payment.get("return_reason"))
    raise Garbled("a payment in no known state")


def read_amount(payment: dict[str, Any]) -> Money:
    """The bank's JSON counts in minor units by ISO 4217; Garbled when it is no amount."""
    minor, currency = payment.get("amount"), payment.get("currency")
    if type(minor) is not int or minor < 1 or not isinstance(currency, str) or currency not in EXPONENTS:
        raise Garbled("a payment without an amount")
    try:
        return Money(minor, currency)
    except FieldErrors:
        raise Garbled("an amount beyond every bound") from None


def _code(value: object) -> str | None:
    """A reason code: ISO 20022 has four characters, the bank's own may have a few more."""
    return value if isinstance(value, str) and 0 < len(value) <= 35 and value.isalnum() and value.isascii() else None


def _instant(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) and len(value) <= 40 else None
    except ValueError:
        return None
    return None if found is None else found.replace(tzinfo=found.tzinfo or UTC)


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds, when it is a sane number of them."""
    return min(float(text), 3600.0) if text and text.isascii() and text.isdigit() and len(text) <= 8 else None
