"""How this provider counts money on its wire, where that differs from ISO 4217's minor units."""

from __future__ import annotations

# The wire counts hundredths although the currency has none, and takes whole units only.
_TIMES_100 = frozenset({"ISK", "UGX"})
# The wire counts whole units although ISO 4217 gives the currency hundredths.
_WHOLE_ONLY = frozenset({"MGA"})
# Three decimals, the last of which must be zero.
_ENDS_IN_ZERO = frozenset({"BHD", "JOD", "KWD", "OMR", "TND"})


def to_wire(minor: int, currency: str) -> int:
    if currency in _TIMES_100:
        return minor * 100
    return minor // 100 if currency in _WHOLE_ONLY else minor


def from_wire(amount: int, currency: str) -> int | None:
    """ISO minor units, or None when the provider does not take this amount in this currency."""
    if currency in _TIMES_100:
        return amount // 100 if amount % 100 == 0 else None
    if currency in _WHOLE_ONLY:
        return amount * 100
    return None if currency in _ENDS_IN_ZERO and amount % 10 else amount
