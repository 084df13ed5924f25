"""What an exchange with Stripe proves: answers become results here, by evidence alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from runtime_app.adapters.payments.stripe_objects import Garbled, plain, read_refund
from runtime_app.adapters.payments.types import (
    CreateResult,
    Declined,
    KeyConflict,
    KeyInProgress,
    Mismatch,
    NotSent,
    Observation,
    OutcomeUnknown,
    Pending,
    ProviderRefund,
    RefundRequest,
    RefundStatus,
    Succeeded,
    Throttled,
)
from runtime_app.adapters.strict_json import Unreadable, read_object
from runtime_app.adapters.wire import Exchange

ADAPTER_VERSION = "stripe-1/sdk-16.1.0"
_KEPT = ("id", "object", "type", "amount", "amount_received", "amount_captured", "amount_refunded", "currency",
         "status", "payment_intent", "charge", "created", "failure_reason", "pending_reason", "has_more", "total_count",
         "source", "livemode", "disputed", "idempotency_key")
_KEPT_INSIDE = ("latest_charge", "source", "request")
_KEPT_ERROR = ("type", "code", "param", "decline_code", "message")
# Stripe gives an over-refund no code of its own, only this sentence.
_TOO_LARGE = "greater than unrefunded amount"


@dataclass(frozen=True, slots=True)
class Answer:
    """An exchange, read. `body` is None when it is not a JSON object, `error` when it is not Stripe's error shape."""

    seen: Observation
    exchange: Exchange
    body: dict[str, Any] | None
    error: dict[str, Any] | None

    @property
    def ok(self) -> dict[str, Any] | None:
        return self.body if self.exchange.status == 200 else None


def read_answer(exchange: Exchange, request_line: str, api_version: str) -> Answer:
    body: dict[str, Any] | None = None
    cause = exchange.cause or None
    if exchange.status is not None:
        try:
            body = read_object(exchange.content)
        except Unreadable as unreadable:
            cause = f"not a JSON object: {unreadable}"[:200]
    error = body.get("error") if body is not None else None
    error = error if isinstance(error, dict) and isinstance(error.get("type"), str) else None
    request_id = exchange.headers.get("Request-Id")
    return Answer(
        Observation(
            request_line=request_line, http_status=exchange.status,
            provider_request_id=request_id[:100] if request_id else None,
            body_sha256=hashlib.sha256(exchange.content).hexdigest() if exchange.status is not None else None,
            body=redacted(body), api_version=api_version, adapter_version=ADAPTER_VERSION,
            replayed=exchange.headers.get("Idempotent-Replayed", "").lower() == "true", cause=cause,
            retry_after=_seconds(exchange.headers.get("Retry-After")),
        ), exchange, body, error,
    )


def redacted(body: dict[str, Any] | None) -> Any:
    """The few fields that a decision rests on; everything else stays only as the digest."""
    if body is None:
        return None
    kept = {name: plain(body[name]) for name in _KEPT if name in body}
    if isinstance(metadata := body.get("metadata"), dict) and "operation_id" in metadata:
        kept["operation_id"] = plain(metadata["operation_id"])
    if isinstance(error := body.get("error"), dict):
        kept["error"] = {name: plain(error[name]) for name in _KEPT_ERROR if name in error}
    for name in _KEPT_INSIDE:
        if isinstance(inner := body.get(name), dict):
            kept[name] = {part: plain(inner[part]) for part in _KEPT if part in inner}
    if isinstance(data := body.get("data"), list):
        kept["data"] = [redacted(one) for one in data[:100] if isinstance(one, dict)]
    return kept


def judge_create(answer: Answer, request: RefundRequest, *, resend: bool) -> CreateResult:
    """The result of sending `request`; `resend` says that it may have been sent before."""
    if answer.ok is None:
        return _judge_refusal(answer, resend=resend)
    try:
        refund = read_refund(answer.ok, request.payment_ref)
    except Garbled as garbled:
        return OutcomeUnknown("answer", f"a 200 that is no refund: {garbled}", answer.seen)
    differs = tuple(name for name, equal in (
        ("amount", refund.amount.minor == request.amount.minor),
        ("currency", refund.amount.currency == request.amount.currency),
        ("payment", refund.payment_ref == request.payment_ref),
        ("operation", refund.operation_ref == str(request.operation_id)),
    ) if not equal)
    return Mismatch(refund, differs, answer.seen) if differs else _by_status(refund, answer.seen)


def judge_cancel(answer: Answer, refund_ref: str) -> CreateResult:
    """As for a create. Declined with the refund: it is cancelled (or failed); without one: it cannot be cancelled."""
    if answer.ok is None:
        return _judge_refusal(answer, resend=False)
    try:
        refund = read_refund(answer.ok)
    except Garbled as garbled:
        return OutcomeUnknown("answer", f"a 200 that is no refund: {garbled}", answer.seen)
    return Mismatch(refund, ("ref",), answer.seen) if refund.ref != refund_ref else _by_status(refund, answer.seen)


def _by_status(refund: ProviderRefund, seen: Observation) -> CreateResult:
    if refund.status is RefundStatus.SUCCEEDED:
        return Succeeded(refund, seen)
    if refund.status in (RefundStatus.PENDING, RefundStatus.REQUIRES_ACTION):
        return Pending(refund, seen)
    return Declined(refund.failure_reason or refund.status.value, seen, refund)


def _judge_refusal(answer: Answer, *, resend: bool) -> CreateResult:
    seen, status, error = answer.seen, answer.exchange.status, answer.error
    if status is None:
        if answer.exchange.untouched:
            return NotSent(answer.exchange.cause, seen)
        return OutcomeUnknown("no_answer", answer.exchange.cause, seen)
    if error is None:
        return OutcomeUnknown("answer", f"{status} that is not Stripe's", seen, status >= 500 and seen.replayed)
    code = error_code(error)
    if status >= 500:
        return OutcomeUnknown("answer", f"{status} {code}", seen, seen.replayed)
    if status in (401, 403):
        return NotSent(f"{status} {code}", seen)
    if status == 429:
        return Throttled(_seconds(answer.exchange.headers.get("Retry-After")), seen)
    if status == 409:
        if code == "idempotency_key_in_use":
            return KeyInProgress(seen)
        return OutcomeUnknown("answer", f"409 {code}", seen)
    if error["type"] == "idempotency_error":
        return KeyConflict(seen)
    if status not in (400, 402, 404):
        return OutcomeUnknown("answer", f"{status} {code}", seen)
    if resend and (code in ("charge_already_refunded", "amount_too_large") or not seen.replayed):
        # What refuses a second send may be the success of the first; only the key's own stored refusal is the first's.
        return OutcomeUnknown("resend", code, seen)
    return Declined(code, seen)


def error_code(error: dict[str, Any]) -> str:
    message, code = error.get("message"), error.get("code")
    if isinstance(message, str) and _TOO_LARGE in message:
        return "amount_too_large"
    return str(plain(code if isinstance(code, str) and code else error["type"]))[:100]


def why(answer: Answer) -> str:
    """Why a query that was not answered with an object says nothing."""
    if answer.exchange.status is None:
        return answer.exchange.cause
    if answer.error is not None:
        return f"{answer.exchange.status} {error_code(answer.error)}"
    return answer.seen.cause or f"{answer.exchange.status} that is not Stripe's"


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds, when it is a sane number of them."""
    if text is None or not (text.isascii() and text.replace(".", "", 1).isdigit()) or len(text) > 8:
        return None
    return min(float(text), 3600.0)
