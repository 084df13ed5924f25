"""The ledger behind the payment provider in memory: payments, refunds and bookings, and what a test arranges."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from runtime_app.adapters.payments.memory_notices import signed_notice
from runtime_app.adapters.payments.types import LineKind, ProviderRefund, RefundStatus, StatementLine
from runtime_app.money import Money

NOT_MONEY = (RefundStatus.FAILED, RefundStatus.CANCELED)
_LEAVES = (RefundStatus.SUCCEEDED, RefundStatus.PENDING)


def _wall_clock() -> datetime:
    return datetime.now(UTC)


class MemoryLedger:
    """`now` is the provider's clock. `disputed` holds payment refs, `made_by` the key that made each refund."""

    def __init__(self, now: Callable[[], datetime] = _wall_clock) -> None:
        self.now = now
        self.live = False
        self.disputed: set[str] = set()
        self.made_by: dict[str, str] = {}
        self.bookings: list[StatementLine] = []
        self._payments: dict[str, Money] = {}
        self._refunds: list[ProviderRefund] = []
        self._changes: dict[str, int] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()

    def add_payment(self, payment_ref: str, captured_minor: int, currency: str) -> None:
        self._payments[payment_ref] = Money(captured_minor, currency)

    def refunds_of(self, payment_ref: str) -> list[ProviderRefund]:
        """The refunds whose money moved or is on its way."""
        return [r for r in self._refunds if r.payment_ref == payment_ref and r.status not in NOT_MONEY]

    def refund_outside(self, payment_ref: str, amount_minor: int) -> None:
        """Somebody refunds in the provider's dashboard."""
        with self._lock:
            self._book(payment_ref, Money(amount_minor, self._payments[payment_ref].currency), None, "succeeded")

    def settle(self, refund_ref: str, status: RefundStatus) -> None:
        """Give a refund another status now, and book what that moves."""
        with self._lock:
            for at, refund in enumerate(self._refunds):
                if refund.ref == refund_ref:
                    self._refunds[at] = replace(refund, status=status)
                    self._changes[refund.payment_ref] = self._changes.get(refund.payment_ref, 0) + 1
                    self._book_change(self._refunds[at])

    def changes_of(self, payment_ref: str) -> int:
        return self._changes.get(payment_ref, 0)

    def notice(
        self, refund_ref: str, *, secret: str, at: datetime | None = None, kind: str = "refund.updated"
    ) -> tuple[dict[str, str], bytes]:
        """Headers and body of a notice about this refund, signed at `at` (now)."""
        refund = next(r for r in self._refunds if r.ref == refund_ref)
        return signed_notice(refund, f"evt_{next(self._numbers)}", secret=secret, at=at or self.now(), kind=kind,
                             live=self.live)

    def _book(self, payment_ref: str, amount: Money, operation_ref: str | None, status: str) -> ProviderRefund:
        refund = ProviderRefund(f"re_{next(self._numbers)}", operation_ref, payment_ref, amount, RefundStatus(status),
                                created_at=self.now())
        self._refunds.append(refund)
        self._changes[payment_ref] = self._changes.get(payment_ref, 0) + 1
        self._book_change(refund)
        return refund

    def _book_change(self, refund: ProviderRefund) -> None:
        """What leaves is booked once, when it sets out; what then fails is booked back once."""
        kinds = [line.kind for line in self.bookings if line.provider_ref == refund.ref]
        if refund.status in _LEAVES and not kinds:
            self._line(refund, LineKind.REFUND, -refund.amount.minor)
        if refund.status in NOT_MONEY and kinds == [LineKind.REFUND]:
            self._line(refund, LineKind.REFUND_FAILED, refund.amount.minor)

    def _line(self, refund: ProviderRefund, kind: LineKind, minor: int) -> None:
        ref, amount, now = f"txn_{next(self._numbers)}", Money(minor, refund.amount.currency), self.now()
        self.bookings.append(StatementLine(
            ref, kind, amount, now, hashlib.sha256(f"{ref} {kind} {amount} {now}".encode()).hexdigest(),
            provider_ref=refund.ref, our_ref=refund.operation_ref, payment_ref=refund.payment_ref, live=self.live,
        ))
