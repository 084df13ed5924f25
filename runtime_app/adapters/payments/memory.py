"""A payment provider in memory, for tests that need no process. It passes the same conformance tests as the real one.

`next_faults` is what goes wrong with the next creates, one word each, in order: see FAULTS.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from runtime_app.adapters.payments.memory_notices import parse_notice
from runtime_app.adapters.payments.memory_queries import API_VERSION, MemoryQueries, seen
from runtime_app.adapters.payments.types import (
    BadStatement,
    Capabilities,
    CreateResult,
    Deadline,
    Declined,
    KeyConflict,
    KeyInProgress,
    Mismatch,
    Notice,
    NoticeRefused,
    NotSent,
    OutcomeUnknown,
    Pending,
    ProviderAccount,
    RefundRequest,
    RefundStatus,
    Statement,
    Succeeded,
    Throttled,
)
from runtime_app.money import Money
from runtime_app.points import point

FAULTS = ("refused", "lost_before", "lost_after", "error_before", "error_after", "throttled", "key_in_use", "pending",
          "failed", "requires_action", "nameless")


@dataclass(slots=True)
class _Key:
    body: bytes
    result: CreateResult


class MemoryPayments(MemoryQueries):
    name = "memory"
    adapter_version = API_VERSION

    def __init__(self, *, remembers_keys: bool = True, now: Callable[[], datetime] | None = None) -> None:
        super().__init__(now=now)
        self._remembers_keys = remembers_keys
        self._keys: dict[str, _Key] = {}
        self.next_faults: deque[str] = deque()
        self.sends: list[tuple[str, bytes]] = []  # every create that reached the provider: key and bytes

    def capabilities(self, account: ProviderAccount) -> Capabilities:
        return Capabilities(
            key_window=24 * 3600.0 if self._remembers_keys else None,
            replays="all" if self._remembers_keys else "none", compares_body=True, key_max_len=255,
            lookup="by_payment", lookup_consistency="strong", can_cancel=frozenset({RefundStatus.REQUIRES_ACTION}),
            sweeps=True, notices=True, statement="list",
        )

    def check_account(self, account: ProviderAccount) -> Mapping[str, str]:
        return dict.fromkeys(account.settings, "The provider in memory has no such setting.")

    def check_representable(self, amount: Money) -> str | None:
        return None if amount.minor > 0 else "A refund is at least one minor unit."

    def check_destination(self, destination: str | None) -> str | None:
        return None

    def freeze(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, amount: Money, reason: str | None,
        destination: str | None = None,
    ) -> RefundRequest:
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
            return NotSent("deadline passed before sending", seen(None))
        fault = self.next_faults.popleft() if self.next_faults else ""
        if fault == "refused":
            return NotSent("refused", seen(None))
        self.sends.append((key, request.body))
        if fault == "lost_before":
            return OutcomeUnknown("no_answer", "closed", seen(None))
        if fault == "throttled":
            return Throttled(1.0, seen(429))
        if fault == "key_in_use":
            return KeyInProgress(seen(409))
        known = self._keys.get(key)
        if known is not None:
            if known.body != request.body:
                return KeyConflict(seen(400))
            return self._replayed(known.result)
        result = self._carry_out(request, key, fault)
        if self._remembers_keys and not (isinstance(result, Declined) and result.code == "resource_missing"):
            self._keys[key] = _Key(request.body, result)
        if fault == "lost_after":
            return OutcomeUnknown("no_answer", "closed", seen(None))
        if resend and isinstance(result, Declined) and result.refund is None:
            return OutcomeUnknown("resend", result.code, result.seen)
        return result

    def _replayed(self, result: CreateResult) -> CreateResult:
        again = replace(result.seen, replayed=True)
        if isinstance(result, OutcomeUnknown):
            return replace(result, seen=again, key_burned=True)
        if isinstance(result, Declined) and result.refund is None:
            return OutcomeUnknown("resend", result.code, again)
        return replace(result, seen=again)

    def _carry_out(self, request: RefundRequest, key: str, fault: str) -> CreateResult:
        if fault == "error_before":
            return OutcomeUnknown("answer", "500 api_error", seen(500))
        captured = self._payments.get(request.payment_ref)
        if captured is None:
            return Declined("resource_missing", seen(404))
        left = captured.minor - sum(r.amount.minor for r in self.refunds_of(request.payment_ref))
        if left <= 0:
            return Declined("charge_already_refunded", seen(400))
        if request.amount.minor > left:
            return Declined("amount_too_large", seen(400))
        status = fault if fault in ("pending", "failed", "requires_action") else "succeeded"
        name = None if fault == "nameless" else str(request.operation_id)
        refund = self._book(request.payment_ref, request.amount, name, status)
        self.made_by[refund.ref] = key
        if fault == "error_after":
            return OutcomeUnknown("answer", "500 api_error", seen(500))
        if fault == "nameless":
            return Mismatch(refund, ("operation",), seen(200))
        if fault == "failed":
            return Declined("failed", seen(200), refund)
        return Succeeded(refund, seen(200)) if status == "succeeded" else Pending(refund, seen(200))

    def cancel_refund(
        self, account: ProviderAccount, *, refund_ref: str, idempotency_key: str, deadline: Deadline
    ) -> CreateResult:
        point("memory.cancel.before")
        refund = next((r for r in self._refunds if r.ref == refund_ref), None)
        if refund is None:
            return Declined("resource_missing", seen(404))
        if refund.status is not RefundStatus.REQUIRES_ACTION:
            return Declined("refund_not_cancelable", seen(400))
        self.settle(refund_ref, RefundStatus.CANCELED)
        point("memory.cancel.after")
        return Declined("canceled", seen(200), replace(refund, status=RefundStatus.CANCELED))

    def parse_statement(self, account: ProviderAccount, raw: bytes) -> Statement | BadStatement:
        return BadStatement("Statements of the provider in memory are read and not uploaded.")

    def parse_notice(
        self, account: ProviderAccount, *, headers: Mapping[str, str], body: bytes, now: datetime
    ) -> Notice | NoticeRefused:
        return parse_notice(account, headers, body, now)
