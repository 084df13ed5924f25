"""What Stripe says of a payment: a payment intent with its charge, or a charge that has no intent."""

from __future__ import annotations

from typing import Any

from runtime_app.adapters.payments.stripe_evidence import Answer, why
from runtime_app.adapters.payments.stripe_objects import known_currency, ref
from runtime_app.adapters.payments.stripe_units import from_stripe
from runtime_app.adapters.payments.types import Inconclusive, PaymentSnapshot


def read_intent(answer: Answer, payment_ref: str) -> PaymentSnapshot | Inconclusive:
    """`amount_received` of the intent is what was captured; what was refunded and disputed is its charge's."""
    if answer.ok is None:
        return Inconclusive(why(answer), answer.seen)
    charge = answer.ok.get("latest_charge")
    if answer.ok.get("id") != payment_ref or not isinstance(charge, dict):
        return Inconclusive("a 200 that is not this payment", answer.seen)
    return _snapshot(answer, payment_ref, answer.ok.get("amount_received"), charge)


def read_charge(answer: Answer, payment_ref: str) -> PaymentSnapshot | Inconclusive:
    """A charge that belongs to an intent goes by the intent's name: under two names it could be refunded twice."""
    if answer.ok is None:
        return Inconclusive(why(answer), answer.seen)
    if answer.ok.get("id") != payment_ref:
        return Inconclusive("a 200 that is not this payment", answer.seen)
    if (intent := answer.ok.get("payment_intent")) is not None:
        return Inconclusive(f"this charge belongs to the payment {ref(intent)}: name that one", answer.seen)
    return _snapshot(answer, payment_ref, answer.ok.get("amount_captured"), answer.ok)


def _snapshot(
    answer: Answer, payment_ref: str, received: object, charge: dict[str, Any]
) -> PaymentSnapshot | Inconclusive:
    body = answer.ok or {}
    currency = known_currency(body.get("currency"))
    captured, refunded = from_stripe(received, currency), from_stripe(charge.get("amount_refunded"), currency)
    if captured is None or refunded is None or captured.minor < 0 or refunded.minor < 0:
        return Inconclusive("a payment without amounts", answer.seen)
    modes = {told for one in (body, charge) if isinstance(told := one.get("livemode"), bool)}
    if len(modes) == 2:
        return Inconclusive("a payment that says both test and live", answer.seen)
    return PaymentSnapshot(payment_ref, captured, refunded, answer.seen, live=next(iter(modes), None),
                           disputed=charge.get("disputed") is True)
