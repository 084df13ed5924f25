"""Reading Stripe's objects when they may be anything: ids, moments, currencies and refunds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from runtime_app.adapters.payments.stripe_units import from_stripe
from runtime_app.adapters.payments.types import ProviderRefund, RefundStatus
from runtime_app.currencies import EXPONENTS

REF_MOST = 200  # characters of an id; Stripe's own have about thirty
OPERATION_MOST = 500  # characters of a metadata value
_SECRET = re.compile(r"\b[a-z]{2}_(?:live|test)?_?[A-Za-z0-9*]{6,}")


class Garbled(ValueError):
    """An object lacks what every one of its kind has, or holds something impossible."""


def plain(value: Any) -> Any:
    """What may be kept of a value: no key, nothing long, and nothing that PostgreSQL cannot store."""
    if isinstance(value, str):
        clean = value.replace("\0", "").encode("utf-8", "replace").decode()
        return _SECRET.sub(lambda m: m.group() if not m.group().startswith(("sk_", "rk_")) else "(key)", clean)[:300]
    if value is None or isinstance(value, bool):
        return value
    return value if isinstance(value, int) and abs(value) < 2**53 else f"({type(value).__name__})"


def ref(value: object) -> str | None:
    """An id that can be kept, or None. A database cannot keep every string."""
    return value if isinstance(value, str) and 0 < len(value) <= REF_MOST and value.isprintable() else None


def moment(value: object) -> datetime | None:
    """An instant in UTC from Stripe's whole seconds, or None."""
    return datetime.fromtimestamp(value, UTC) if type(value) is int and 0 <= value < 2**34 else None


def known_currency(value: object) -> str | None:
    return value.upper() if isinstance(value, str) and value.upper() in EXPONENTS else None


def operation_of(value: dict[str, Any]) -> str | None:
    """The operation's id that this object carries in its metadata."""
    metadata = value.get("metadata")
    operation = metadata.get("operation_id") if isinstance(metadata, dict) else None
    kept = isinstance(operation, str) and len(operation) <= OPERATION_MOST and operation.isprintable()
    return operation if kept else None


def names_charge(payment_ref: str) -> bool:
    """Whether this names a charge (ch_, py_) and not a payment intent."""
    return payment_ref.startswith(("ch_", "py_"))


def payment_of(value: dict[str, Any], asked: str = "") -> str | None:
    """The payment that a refund or dispute belongs to: as `asked` when that is one of its names, else the intent."""
    names = [name for field in ("payment_intent", "charge") if (name := ref(value.get(field))) is not None]
    return asked if asked in names else next(iter(names), None)


def read_refund(value: object, asked: str = "") -> ProviderRefund:
    """A refund object, or Garbled. `asked` is the payment that was asked about, if one was."""
    if not isinstance(value, dict) or value.get("object") != "refund":
        raise Garbled("not a refund")
    named, payment = ref(value.get("id")), payment_of(value, asked)
    amount = from_stripe(value.get("amount"), value.get("currency"))
    if named is None or payment is None or amount is None or amount.minor < 1:
        raise Garbled("id, payment or amount")
    try:
        status = RefundStatus(value.get("status"))  # type: ignore[arg-type]  # it refuses others
    except ValueError:
        raise Garbled("status") from None
    reason = value.get("failure_reason")
    return ProviderRefund(named, operation_of(value), payment, amount, status,
                          plain(reason) if isinstance(reason, str) else None, moment(value.get("created")))
