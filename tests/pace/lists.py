"""An account's list of refunds as a test wants it shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime_app.adapters.payments.types import Inconclusive, Observation, ProviderRefund, RefundPage, RefundStatus
from runtime_app.models import Operation
from runtime_app.money import Money

SEEN = Observation(
    request_line="GET /v1/refunds", http_status=200, provider_request_id=None, body_sha256="0" * 64,
    body={"object": "list", "data": []}, api_version="test", adapter_version="test",
)


def refund_of(operation: Operation, **changes: Any) -> ProviderRefund:
    """As the provider would show it, made when it was sent."""
    made = ProviderRefund(
        f"re_{operation.id.hex}", str(operation.id), operation.payment_ref,
        Money(operation.amount_minor, operation.currency), RefundStatus.SUCCEEDED, created_at=operation.first_submit_at,
    )
    return ProviderRefund(**{name: changes.get(name, getattr(made, name)) for name in ProviderRefund.__slots__})


def pages(*shown: Sequence[ProviderRefund] | Inconclusive) -> Callable[..., Any]:
    """A bend of `list_refunds` that shows these pages one after another, and begins again without a cursor."""

    def list_refunds(real: Any, account: Any, *, payment_ref: str | None, cursor: str | None, **kwargs: Any) -> Any:
        if payment_ref is not None:
            return real(account, payment_ref=payment_ref, cursor=cursor, **kwargs)
        number = int(cursor or 0)
        page = shown[number]
        if isinstance(page, Inconclusive):
            return page
        return RefundPage(tuple(page), str(number + 1) if number + 1 < len(shown) else None, SEEN)

    return list_refunds
