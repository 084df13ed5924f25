"""The look-ups of the payment provider in memory: all of them strong, and inconclusive while a test says so."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from uuid import UUID

from runtime_app.adapters.payments.days import day_window, known_zone
from runtime_app.adapters.payments.memory_ledger import NOT_MONEY, MemoryLedger
from runtime_app.adapters.payments.types import (
    Absent,
    BadStatement,
    Deadline,
    FindResult,
    Found,
    Inconclusive,
    NoSuchRefund,
    Observation,
    PaymentSnapshot,
    ProviderAccount,
    RefundPage,
    Statement,
)
from runtime_app.money import Money
from runtime_app.points import point

API_VERSION = "memory-1"
PAGE_SIZE = 100


def seen(status: int | None) -> Observation:
    return Observation("memory", status, None, None, None, API_VERSION, API_VERSION)


class MemoryQueries(MemoryLedger):
    """`query_trouble` is a cause while every look-up is inconclusive."""

    def __init__(self, *, now: Callable[[], datetime] | None = None) -> None:
        super().__init__(*([now] if now else []))
        self.query_trouble: str | None = None

    def find_refunds(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, currency: str, deadline: Deadline
    ) -> FindResult:
        point("memory.list.before")
        with self._lock:
            listed = [r for r in reversed(self._refunds) if r.payment_ref == payment_ref]
        point("memory.list.after")
        if trouble := self._trouble(deadline, known=payment_ref in self._payments):
            return trouble
        ours = tuple(r for r in listed if r.operation_ref == str(operation_id)) or tuple(
            replace(r, operation_ref=str(operation_id)) for r in listed
            if r.operation_ref is None and self.made_by.get(r.ref) == str(operation_id))
        if ours:
            return Found(ours, seen(200))
        return Absent(seen(200), tuple(r for r in listed if r.operation_ref is None and r.status not in NOT_MONEY))

    def _trouble(self, deadline: Deadline, *, known: bool = True) -> Inconclusive | None:
        if deadline.left <= 0:
            return Inconclusive("deadline passed before sending", seen(None))
        if self.query_trouble is not None or not known:
            return Inconclusive(self.query_trouble or "404 resource_missing", seen(404))
        return None

    def retrieve_refund(
        self, account: ProviderAccount, *, refund_ref: str, deadline: Deadline
    ) -> Found | NoSuchRefund | Inconclusive:
        point("memory.retrieve.before")
        with self._lock:
            found = tuple(r for r in self._refunds if r.ref == refund_ref)
        point("memory.retrieve.after")
        return self._trouble(deadline) or (Found(found, seen(200)) if found else NoSuchRefund(seen(404)))

    def list_refunds(
        self, account: ProviderAccount, *, payment_ref: str | None, since: datetime | None, cursor: str | None,
        deadline: Deadline,
    ) -> RefundPage | Inconclusive:
        point("memory.list.before")
        with self._lock:
            listed = [r for r in reversed(self._refunds) if payment_ref in (None, r.payment_ref)]
        point("memory.list.after")
        if trouble := self._trouble(deadline, known=payment_ref is None or payment_ref in self._payments):
            return trouble
        start = 1 + next((at for at, r in enumerate(listed) if r.ref == cursor), -1)
        rest = [r for r in listed[start:] if since is None or r.created_at is None or r.created_at >= since]
        page = tuple(rest[:PAGE_SIZE])
        return RefundPage(page, page[-1].ref if len(rest) > PAGE_SIZE else None, seen(200))

    def retrieve_payment(
        self, account: ProviderAccount, *, payment_ref: str, deadline: Deadline
    ) -> PaymentSnapshot | Inconclusive:
        point("memory.payment.before")
        captured = self._payments.get(payment_ref)
        point("memory.payment.after")
        trouble = self._trouble(deadline, known=captured is not None)
        if trouble is not None or captured is None:
            return trouble or Inconclusive("404 resource_missing", seen(404))
        total = sum(r.amount.minor for r in self.refunds_of(payment_ref))
        return PaymentSnapshot(payment_ref, captured, Money(total, captured.currency), seen(200), live=self.live,
                               disputed=payment_ref in self.disputed)

    def read_statement(
        self, account: ProviderAccount, *, day: date, deadline: Deadline
    ) -> Statement | BadStatement | Inconclusive:
        point("memory.statement.before")
        with self._lock:
            bookings = list(reversed(self.bookings))
        point("memory.statement.after")
        zone = known_zone(account.time_zone)
        if zone is None:
            return BadStatement(f"There is no time zone {account.time_zone!r}, so this account has no days.")
        if trouble := self._trouble(deadline):
            return trouble
        start, end = day_window(day, zone)
        lines = tuple(line for line in bookings if start <= line.occurred_at < end)
        said = hashlib.sha256(repr([line.raw_sha256 for line in lines]).encode()).hexdigest()
        return Statement(day, lines, said, "list", count_told=len(lines), seen=seen(200))
