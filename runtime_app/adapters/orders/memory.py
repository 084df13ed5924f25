"""An order system in memory, for tests that need no process. It answers as the real one does."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

from runtime_app.adapters.orders.types import (
    OrderMissing,
    OrderPayment,
    OrderRefund,
    OrderSnapshot,
    OrderUnavailable,
)
from runtime_app.adapters.payments.memory import MemoryPayments
from runtime_app.points import point


class MemoryOrders:
    """Orders whose refunds are those of a `MemoryPayments` ledger. `down` is a cause while it does not answer."""

    def __init__(self, ledger: MemoryPayments) -> None:
        self._ledger = ledger
        self._orders: dict[tuple[str, str], OrderSnapshot] = {}
        self._told: dict[str, tuple[str, str, str, int, str, str | None]] = {}
        self._lock = threading.Lock()
        self.down: str | None = None

    def add_order(
        self, tenant: str, order_ref: str, currency: str, payments: dict[str, int], *, destination: str | None = None
    ) -> None:
        """Make an order and its payments at the provider; `payments` maps payment_ref to what was captured."""
        for ref, captured in payments.items():
            self._ledger.add_payment(ref, captured, currency)
        with self._lock:
            self._orders[tenant, order_ref] = OrderSnapshot(
                order_ref, 1, datetime.now(UTC), currency,
                tuple(OrderPayment(ref, captured) for ref, captured in payments.items()), destination,
            )

    def change(self, tenant: str, order_ref: str, *, note: str | None = None, destination: str | None = None) -> None:
        """Give the order another note or destination, and with it another version."""
        with self._lock:
            known = self._orders[tenant, order_ref]
            self._orders[tenant, order_ref] = replace(
                known, version=known.version + 1, note=note if note is not None else known.note,
                destination=destination if destination is not None else known.destination,
            )

    def read_order(
        self, tenant: str, order_ref: str, *, timeout: float
    ) -> OrderSnapshot | OrderMissing | OrderUnavailable:
        point("orders.read.before")
        with self._lock:
            known = self._orders.get((tenant, order_ref))
        point("orders.read.after")
        if self.down is not None:
            return OrderUnavailable(self.down)
        if known is None:
            return OrderMissing()
        payments = tuple(
            replace(payment, refunds=tuple(
                OrderRefund(r.amount.minor, r.operation_ref) for r in self._ledger.refunds_of(payment.payment_ref)
            ))
            for payment in known.payments
        )
        changes = sum(self._ledger.changes_of(payment.payment_ref) for payment in payments)
        return replace(known, payments=payments, version=known.version + changes, as_of=datetime.now(UTC))

    def record_refund(
        self, tenant: str, order_ref: str, *, operation_id: str, payment_ref: str, amount_minor: int, status: str,
        provider_ref: str | None, timeout: float,
    ) -> str | None:
        point("orders.record.before")
        told = (tenant, order_ref, payment_ref, amount_minor, status, provider_ref)
        with self._lock:
            if self.down is not None:
                return self.down
            known = self._orders.get((tenant, order_ref))
            before = self._told.get(operation_id)
            if known is None:
                return "status 404"
            if before is not None and before[:4] != told[:4]:
                return "status 409"
            if before != told:
                self._told[operation_id] = told
                self._orders[tenant, order_ref] = replace(known, version=known.version + 1)
        point("orders.record.after")
        return None
