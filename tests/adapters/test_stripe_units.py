"""Which amounts Stripe moves and how it counts them (money.md section 5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from runtime_app.adapters.payments.stripe_units import from_stripe, refusal, to_stripe
from runtime_app.currencies import EXPONENTS
from runtime_app.money import MAX_MINOR, Money
from tests.adapters.providers import Refunding, StripeAtSandbox


@pytest.mark.parametrize(("currency", "minor", "at_stripe"), [
    ("USD", 1999, 1999), ("EUR", 1, 1), ("JPY", 500, 500), ("KRW", 7, 7), ("CLP", 12, 12), ("HUF", 1234, 1234),
    ("TWD", 150, 150), ("COP", 1999, 1999), ("ISK", 250, 25000), ("UGX", 1, 100), ("MGA", 500, 5), ("KWD", 1230, 1230),
    ("BHD", 10, 10), ("CVE", 100, 100),
])
def test_an_amount_is_counted_as_stripe_counts_it(currency: str, minor: int, at_stripe: int) -> None:
    amount = Money(minor, currency)
    assert refusal(amount) is None
    assert to_stripe(amount) == at_stripe
    assert from_stripe(at_stripe, currency.lower()) == amount


@pytest.mark.parametrize(("currency", "minor", "words"), [
    ("KWD", 1234, "steps of 0.010"), ("TND", 1, "steps of 0.010"), ("MGA", 550, "steps of 1.00"),
    ("CLF", 10000, "units"), ("IQD", 1000, "units"), ("USD", 0, "at least"), ("USD", -5, "at least"),
    ("USD", 10**12, "twelve digits"), ("ISK", 10**10, "twelve digits"),
])
def test_an_amount_that_cannot_be_moved_is_refused_with_a_sentence(currency: str, minor: int, words: str) -> None:
    """Not representable means waiting for input, never rounding."""
    assert words in (refusal(Money(minor, currency)) or "")


@given(currency=some.sampled_from(sorted(EXPONENTS)), minor=some.integers(1, MAX_MINOR))
def test_what_is_accepted_comes_back_exactly(currency: str, minor: int) -> None:
    amount = Money(minor, currency)
    if refusal(amount) is None:
        assert from_stripe(to_stripe(amount), currency) == amount


@pytest.mark.parametrize(("value", "currency"), [
    (150, "isk"), (True, "usd"), (1.0, "usd"), ("1", "usd"), (10**30, "usd"), (5, "zzz"), (5, None),
])
def test_what_we_could_not_have_written_is_not_read(value: object, currency: object) -> None:
    assert from_stripe(value, currency) is None


@pytest.mark.parametrize(("currency", "minor", "sent"), [("ISK", 25, "amount=2500"), ("MGA", 2500, "amount=25"),
                                                          ("KWD", 2500, "amount=2500"), ("JPY", 25, "amount=25")])
def test_a_whole_refund_keeps_its_amount(stripe: StripeAtSandbox, currency: str, minor: int, sent: str) -> None:
    refund = Refunding(stripe, stripe.open_payment(10000, currency), Money(minor, currency))
    refund.send()
    assert sent in stripe.sandbox.requests(payment_ref=refund.payment_ref)[0]["body"].split("&")
    assert stripe.moved(refund.payment_ref) == [(minor, str(refund.operation_id))]
