"""A payment provider in memory, for tests that need no process. It passes the same conformance tests as the real one.

`next_faults` is what goes wrong with the next creates, one word each, in order: see FAULTS.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections import deque
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from runtime_app.adapters.payments.types import (
    Absent,
    Capabilities,
    CreateResult,
    Deadline,
    Declined,
    FindResult,
    Found,
    Inconclusive,
    KeyConflict,
    KeyInProgress,
    NotSent,
    Observation,
    OutcomeUnknown,
    PaymentSnapshot,
    Pending,
    ProviderAccount,
    ProviderRefund,
    RefundRequest,
    RefundStatus,
    Succeeded,
    Throttled,
)
from runtime_app.money import Money
from runtime_app.points import point

API_VERSION = "memory-1"
FAULTS = ("refused", "lost_before", "lost_after", "error_before", "error_after", "throttled", "key_in_use", "pending",
          "failed", "requires_action")
_NOT_MONEY = (RefundStatus.FAILED, RefundStatus.CANCELED)


@dataclass(slots=True)
class _Key:
    body: bytes
    result: CreateResult


class MemoryPayments:
    name = "memory"
    adapter_version = "memory-1"

    def __init__(self, *, remembers_keys: bool = True) -> None:
        self._remembers_keys = remembers_keys
        self._payments: dict[str, Money] = {}
        self._refunds: list[ProviderRefund] = []
        self._keys: dict[str, _Key] = {}
        self._changes: dict[str, int] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self.next_faults: deque[str] = deque()
        self.query_trouble: str | None = None  # a cause while every look-up is inconclusive
        self.sends: list[tuple[str, bytes]] = []  # every create that reached the provider: key and bytes

    # --- what a test arranges and looks at

    def add_payment(self, payment_ref: str, captured_minor: int, currency: str) -> None:
        self._payments[payment_ref] = Money(captured_minor, currency)

    def refunds_of(self, payment_ref: str) -> list[ProviderRefund]:
        """The refunds whose money moved or is on its way."""
        return [r for r in self._refunds if r.payment_ref == payment_ref and r.status not in _NOT_MONEY]

    def refund_outside(self, payment_ref: str, amount_minor: int) -> None:
        """Somebody refunds in the provider's dashboard."""
        with self._lock:
            self._book(payment_ref, Money(amount_minor, self._payments[payment_ref].currency), None, "succeeded")

    def settle(self, refund_ref: str, status: RefundStatus) -> None:
        with self._lock:
            for at, refund in enumerate(self._refunds):
                if refund.ref == refund_ref:
                    self._refunds[at] = replace(refund, status=status)
                    self._changes[refund.payment_ref] = self._changes.get(refund.payment_ref, 0) + 1

    def changes_of(self, payment_ref: str) -> int:
        return self._changes.get(payment_ref, 0)

    # --- PaymentProvider

    def capabilities(self, account: ProviderAccount) -> Capabilities:
        return Capabilities(
            key_window=24 * 3600.0 if self._remembers_keys else None,
            replays="all" if self._remembers_keys else "none", compares_body=True, key_max_len=255,
            lookup="by_payment", lookup_consistency="strong", can_cancel=frozenset({RefundStatus.REQUIRES_ACTION}),
        )

    def check_representable(self, amount: Money) -> str | None:
        return None if amount.minor > 0 else "A refund is at least one minor unit."

    def freeze(self, *, operation_id: UUID, payment_ref: str, amount: Money, reason: str | None) -> RefundRequest:
        body = json.dumps([payment_ref, amount.minor, amount.currency, str(operation_id), reason]).encode()
        return RefundRequest(operation_id, payment_ref, amount, body, hashlib.sha256(body).hexdigest(), API_VERSION)

    def create_refund(
        self, account: ProviderAccount, request: RefundRequest, *, idempotency_key: str, resend: bool,
        deadline: Deadline,
    ) -> CreateResult:
        point("memory.create.before")
        with self._lock:
            result = self._create(request, idempotency_key, resend, deadline)
        point("memory.create.after")
        return result

    def _create(self, request: RefundRequest, key: str, resend: bool, deadline: Deadline) -> CreateResult:
        if deadline.left <= 0:
            return NotSent("deadline passed before sending", _seen(None))
        fault = self.next_faults.popleft() if self.next_faults else ""
        if fault == "refused":
            return NotSent("refused", _seen(None))
        self.sends.append((key, request.body))
        if fault == "lost_before":
            return OutcomeUnknown("no_answer", "closed", _seen(None))
        if fault == "throttled":
            return Throttled(1.0, _seen(429))
        if fault == "key_in_use":
            return KeyInProgress(_seen(409))
        known = self._keys.get(key)
        if known is not None:
            if known.body != request.body:
                return KeyConflict(_seen(400))
            return self._replayed(known.result)
        result = self._carry_out(request, fault)
        if self._remembers_keys and not (isinstance(result, Declined) and result.code == "resource_missing"):
            self._keys[key] = _Key(request.body, result)
        if fault == "lost_after":
            return OutcomeUnknown("no_answer", "closed", _seen(None))
        if resend and isinstance(result, Declined) and result.refund is None:
            return OutcomeUnknown("resend", result.code, result.seen)
        return result

    def _replayed(self, result: CreateResult) -> CreateResult:
        seen = replace(result.seen, replayed=True)
        if isinstance(result, OutcomeUnknown):
            return replace(result, seen=seen, key_burned=True)
        if isinstance(result, Declined) and result.refund is None:
            return OutcomeUnknown("resend", result.code, seen)
        return replace(result, seen=seen)

    def _carry_out(self, request: RefundRequest, fault: str) -> CreateResult:
        if fault == "error_before":
            return OutcomeUnknown("answer", "500 api_error", _seen(500))
        captured = self._payments.get(request.payment_ref)
        if captured is None:
            return Declined("resource_missing", _seen(404))
        left = captured.minor - sum(r.amount.minor for r in self.refunds_of(request.payment_ref))
        if left <= 0:
            return Declined("charge_already_refunded", _seen(400))
        if request.amount.minor > left:
            return Declined("amount_too_large", _seen(400))
        status = fault if fault in ("pending", "failed", "requires_action") else "succeeded"
        refund = self._book(request.payment_ref, request.amount, str(request.operation_id), status)
        if fault == "error_after":
            return OutcomeUnknown("answer", "500 api_error", _seen(500))
        if fault == "failed":
            return Declined("failed", _seen(200), refund)
        return Succeeded(refund, _seen(200)) if status == "succeeded" else Pending(refund, _seen(200))

    def _book(self, payment_ref: str, amount: Money, operation_ref: str | None, status: str) -> ProviderRefund:
        refund = ProviderRefund(f"re_{next(self._numbers)}", operation_ref, payment_ref, amount, RefundStatus(status),
                                created_at=datetime.now(UTC))
        self._refunds.append(refund)
        self._changes[payment_ref] = self._changes.get(payment_ref, 0) + 1
        return refund

    def find_refunds(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, currency: str, deadline: Deadline
    ) -> FindResult:
        point("memory.list.before")
        with self._lock:
            listed = [r for r in reversed(self._refunds) if r.payment_ref == payment_ref]
        point("memory.list.after")
        if deadline.left <= 0:
            return Inconclusive("deadline passed before sending", _seen(None))
        if self.query_trouble is not None or payment_ref not in self._payments:
            return Inconclusive(self.query_trouble or "404 resource_missing", _seen(404))
        ours = tuple(r for r in listed if r.operation_ref == str(operation_id))
        if ours:
            return Found(ours, _seen(200))
        return Absent(_seen(200), tuple(r for r in listed if r.operation_ref is None and r.status not in _NOT_MONEY))

    def retrieve_payment(
        self, account: ProviderAccount, *, payment_ref: str, deadline: Deadline
    ) -> PaymentSnapshot | Inconclusive:
        point("memory.payment.before")
        captured = self._payments.get(payment_ref)
        point("memory.payment.after")
        if captured is None or self.query_trouble is not None or deadline.left <= 0:
            return Inconclusive(self.query_trouble or "404 resource_missing", _seen(404))
        total = sum(r.amount.minor for r in self.refunds_of(payment_ref))
        return PaymentSnapshot(payment_ref, captured, Money(total, captured.currency), _seen(200))

    def cancel_refund(
        self, account: ProviderAccount, *, refund_ref: str, idempotency_key: str, deadline: Deadline
    ) -> CreateResult:
        point("memory.cancel.before")
        refund = next((r for r in self._refunds if r.ref == refund_ref), None)
        if refund is None:
            return Declined("resource_missing", _seen(404))
        if refund.status is not RefundStatus.REQUIRES_ACTION:
            return Declined("refund_not_cancelable", _seen(400))
        self.settle(refund_ref, RefundStatus.CANCELED)
        point("memory.cancel.after")
        return Declined("canceled", _seen(200), replace(refund, status=RefundStatus.CANCELED))


def _seen(status: int | None) -> Observation:
    return Observation("memory", status, None, None, None, API_VERSION, MemoryPayments.adapter_version)
