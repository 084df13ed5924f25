"""What could be refunded of an order right now, for a person who is about to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from runtime_app import rows
from runtime_app.adapters.orders.types import OrderMissing, OrderSystem, OrderUnavailable
from runtime_app.models import Tenant
from runtime_app.workflows.refund.facts import payments_of
from runtime_app.workflows.refund.order import CannotRefund, NotNow

TIMEOUT = 5.0  # seconds; somebody is looking at a page


@dataclass(frozen=True, slots=True)
class PaymentPreview:
    """`remaining_minor` is what the balance leaves; `requested_minor` is asked for already and not yet held."""

    payment_ref: str
    captured_minor: int
    remaining_minor: int
    requested_minor: int


@dataclass(frozen=True, slots=True)
class Preview:
    order_ref: str
    version: int
    as_of: datetime
    currency: str
    payments: tuple[PaymentPreview, ...]


def preview(orders: OrderSystem, tenant: Tenant, order_ref: str) -> Preview | CannotRefund | NotNow:
    """The order as its system tells it now, less what our own refunds have taken or reserved."""
    answer = orders.read_order(tenant.slug, order_ref, timeout=TIMEOUT)
    if isinstance(answer, OrderUnavailable):
        return NotNow("The order system does not answer right now; try again in a moment.")
    if isinstance(answer, OrderMissing):
        return CannotRefund("order_unknown", f"The order system has no order {order_ref}.")
    balances, ours = payments_of(tenant.id, order_ref)
    requested = _requested(tenant, order_ref)
    payments = []
    for payment in answer.payments:
        external = sum(r.amount_minor for r in payment.refunds if r.operation_id not in ours)
        known = balances.get(payment.payment_ref, {}).values()
        external = max([external, *(b.external_provider_minor for b in known)])
        taken = sum(b.reserved_minor + b.refunded_minor for b in known)
        left = max(0, payment.captured_minor - external - taken)
        asked = requested.get(payment.payment_ref, 0) + (requested.get(None, 0) if len(answer.payments) == 1 else 0)
        payments.append(PaymentPreview(payment.payment_ref, payment.captured_minor, left, asked))
    return Preview(answer.order_ref, answer.version, answer.as_of, answer.currency, tuple(payments))


def _requested(tenant: Tenant, order_ref: str) -> Mapping[str | None, int]:
    """Sums by payment of requests that may still take a hold; None for those that name no payment yet."""
    found = rows.run(
        "SELECT payment_ref, sum(amount_minor)::bigint FROM runtime_app_task WHERE tenant_id = %s AND order_ref = %s"
        " AND status IN ('queued', 'waiting_input', 'waiting_approval') AND amount_minor IS NOT NULL"
        " GROUP BY payment_ref",
        [tenant.id, order_ref],
    )
    return {row[0]: row[1] for row in found}
