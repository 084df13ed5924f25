"""The provider of an account, and what of it can be asked."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from runtime_app.adapters import payments
from runtime_app.adapters.payments.types import Capabilities, PaymentProvider, ProviderAccount


@cache
def provider(name: str) -> PaymentProvider:
    """This process's adapter of this name. Raises ValueError when there is none."""
    timing = settings.TIMING
    return payments.build(name, connect_timeout=timing.connect_timeout, read_timeout=timing.read_timeout)


@cache
def form_of(name: str) -> str:
    """In which form statements come from this provider: list | camt.053 | none."""
    if name not in payments.PROVIDERS:
        return "none"
    return provider(name).capabilities(ProviderAccount(id=name, provider=name, api_key="")).statement


def can_ask(capabilities: Capabilities) -> bool:
    """Whether the provider can be asked what became of an operation."""
    return capabilities.lookup != "none"
