"""What an order system can be asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OrderRefund:
    """A refund the order system knows of; `operation_id` is ours, or None for one made outside of us."""

    amount_minor: int
    operation_id: str | None


@dataclass(frozen=True, slots=True)
class OrderPayment:
    payment_ref: str
    captured_minor: int
    account: str | None = None  # which of the tenant's accounts took it; None: the tenant's default one
    refunds: tuple[OrderRefund, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderSnapshot:
    """An order as it was at `version`; `as_of` is the order system's own time."""

    order_ref: str
    version: int
    as_of: datetime
    currency: str
    payments: tuple[OrderPayment, ...]
    destination: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class OrderMissing:
    """The order system answered, and has no such order."""


@dataclass(frozen=True, slots=True)
class OrderUnavailable:
    """The order system did not answer usefully; asking again later may help."""

    cause: str


class OrderSystem(Protocol):
    """No method raises for an answer; each has its own timeouts."""

    def read_order(
        self, tenant: str, order_ref: str, *, timeout: float
    ) -> OrderSnapshot | OrderMissing | OrderUnavailable: ...

    def record_refund(
        self, tenant: str, order_ref: str, *, operation_id: str, payment_ref: str, amount_minor: int, status: str,
        provider_ref: str | None, timeout: float,
    ) -> str | None:
        """Tell of one refund, the same one any number of times. None when told, else what went wrong."""
