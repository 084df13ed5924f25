"""The payment providers that exist, by name."""

from __future__ import annotations

from collections.abc import Callable

from runtime_app.adapters.payments.bank import BankPayments
from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import PaymentProvider


def _stripe(connect_timeout: float, read_timeout: float) -> PaymentProvider:
    return StripePayments(connect_timeout=connect_timeout, read_timeout=read_timeout)


def _bank(connect_timeout: float, read_timeout: float) -> PaymentProvider:
    return BankPayments(connect_timeout=connect_timeout, read_timeout=read_timeout)


PROVIDERS: dict[str, Callable[[float, float], PaymentProvider]] = {
    "stripe": _stripe,
    "bank": _bank,
}


def build(provider: str, *, connect_timeout: float, read_timeout: float) -> PaymentProvider:
    """A provider by its name, with its timeouts in seconds; ValueError when there is none of this name."""
    make = PROVIDERS.get(provider)
    if make is None:
        raise ValueError(f"there is no payment provider {provider!r}; there is {', '.join(sorted(PROVIDERS))}")
    return make(connect_timeout, read_timeout)
