"""One balance transaction of Stripe as a statement line, with the refund or dispute that it books."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from zoneinfo import ZoneInfo

from runtime_app.adapters.payments.stripe_objects import Garbled, moment, operation_of, payment_of, ref
from runtime_app.adapters.payments.stripe_units import from_stripe
from runtime_app.adapters.payments.types import LineKind, StatementLine
from runtime_app.money import Money

_KINDS = {
    "refund": LineKind.REFUND, "payment_refund": LineKind.REFUND,
    "refund_failure": LineKind.REFUND_FAILED, "payment_failure_refund": LineKind.REFUND_FAILED,
    "dispute": LineKind.DISPUTE, "adjustment": LineKind.DISPUTE,
}


def read_line(value: object, zone: ZoneInfo) -> StatementLine:
    """A balance transaction, or Garbled with its id as far as it has one."""
    if not isinstance(value, dict) or value.get("object") != "balance_transaction":
        raise Garbled("it is no balance transaction")
    named = ref(value.get("id"))
    booked, occurred = from_stripe(value.get("amount"), value.get("currency")), moment(value.get("created"))
    fee, kind = from_stripe(value.get("fee", 0), value.get("currency")), value.get("type")
    if named is None or booked is None or occurred is None or fee is None or not isinstance(kind, str):
        raise Garbled(f"{named or 'a line without id'} lacks an amount, a currency, a time or a type")
    source = value.get("source")
    of: dict[str, Any] = source if isinstance(source, dict) else {"id": source}
    amount, live, due = _gross(value, of, booked), of.get("livemode"), moment(value.get("available_on"))
    return StatementLine(
        ref=named, kind=_kind(kind, value), amount=amount, occurred_at=occurred,
        raw_sha256=hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest(),
        provider_ref=ref(of.get("id")), our_ref=operation_of(of), payment_ref=payment_of(of),
        settled_on=due.astimezone(zone).date() if due is not None else None, fee=fee if fee.minor else None,
        live=live if isinstance(live, bool) else None, booked=booked if amount != booked else None,
    )


def _kind(kind: str, value: dict[str, Any]) -> LineKind:
    if kind == "adjustment" and value.get("reporting_category") == "other_adjustment":
        return LineKind.OTHER
    return _KINDS.get(kind, LineKind.OTHER)


def _gross(value: dict[str, Any], source: dict[str, Any], booked: Money) -> Money:
    """What was refunded, where Stripe exchanged it and says so: by the rate alone nobody could compare it with ours."""
    given = from_stripe(source.get("amount"), source.get("currency"))
    rate = value.get("exchange_rate")
    if given is None or given.currency == booked.currency or type(rate) not in (int, float):
        return booked
    return given if booked.minor > 0 else Money(-given.minor, given.currency)
