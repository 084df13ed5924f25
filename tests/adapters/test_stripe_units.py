"""Which amounts Stripe moves and how it counts them (money.md section 5, C41)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from runtime_app.adapters.payments.stripe_units import (
    AMOUNT_MOST,
    RULES,
    UNITS_UNKNOWN,
    from_stripe,
    refusal,
    to_stripe,
)
from runtime_app.currencies import EXPONENTS
from runtime_app.money import MAX_MINOR, Money
from tests.adapters.providers import Refunding, StripeAtSandbox


@pytest.mark.parametrize(("currency", "minor", "at_stripe"), [
    ("USD", 1999, 1999), ("EUR", 1, 1), ("JPY", 500, 500), ("KRW", 7, 7), ("CLP", 12, 12), ("HUF", 1234, 1234),
    ("TWD", 150, 150), ("COP", 1999, 1999), ("ISK", 250, 25000), ("UGX", 1, 100), ("MGA", 500, 5), ("KWD", 1230, 1230),
    ("BHD", 10, 10), ("CVE", 100, 100), ("HUF", 1, 1), ("TWD", 1, 1), ("CLP", 1, 1), ("IDR", 1999, 1999),
    ("LBP", 100, 100), ("OMR", 9990, 9990), ("BGN", 199, 199), ("ISK", 1, 100), ("MGA", 100, 1), ("XPF", 3, 3),
])
def test_an_amount_is_counted_as_stripe_counts_it(currency: str, minor: int, at_stripe: int) -> None:
    amount = Money(minor, currency)
    assert refusal(amount) is None
    assert to_stripe(amount) == at_stripe
    assert from_stripe(at_stripe, currency.lower()) == amount


@pytest.mark.parametrize(("currency", "minor", "words"), [
    ("KWD", 1234, "steps of 0.010"), ("TND", 1, "steps of 0.010"), ("MGA", 550, "steps of 1.00"),
    ("MGA", 99, "steps of 1.00"), ("JOD", 1005, "steps of 0.010"), ("CLF", 10000, "units"), ("IQD", 1000, "units"),
    ("IQD", 1234, "units"), ("LYD", 10, "units"), ("USD", 0, "at least"), ("USD", -5, "at least"),
    ("USD", 10**12, "twelve digits"), ("ISK", 10**10, "twelve digits"), ("MGA", 10**14 + 100, "twelve digits"),
])
def test_an_amount_that_cannot_be_moved_is_refused_with_a_sentence(currency: str, minor: int, words: str) -> None:
    """Not representable means waiting for input, never rounding."""
    assert words in (refusal(Money(minor, currency)) or "")


# As Stripe's documentation lists them.
ZERO_AT_STRIPE = frozenset({"BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF",
                            "XOF", "XPF"})
HUNDREDTHS_OF_NONE = frozenset({"ISK", "UGX"})
ENDS_IN_ZERO = frozenset({"BHD", "JOD", "KWD", "OMR", "TND"})
ANY_CURRENCY = some.sampled_from(sorted(EXPONENTS))


@settings(max_examples=500)
@given(currency=ANY_CURRENCY, minor=some.integers(1, MAX_MINOR) | some.integers(1, 20_000))
def test_an_amount_is_refused_or_comes_back_exactly(currency: str, minor: int) -> None:
    check_round_trip(Money(minor, currency))


@pytest.mark.parametrize("currency", sorted(EXPONENTS))
def test_every_currency_comes_back_exactly(currency: str) -> None:
    for minor in (1, 5, 10, 99, 100, 101, 150, 1000, 1230, 1234, 10**6, AMOUNT_MOST, AMOUNT_MOST + 1, MAX_MINOR):
        check_round_trip(Money(minor, currency))


def check_round_trip(amount: Money) -> None:
    """No amount is rounded on its way: what is accepted is read back as it was, and means the same at Stripe."""
    if refusal(amount) is not None:
        return
    currency, sent = amount.currency, to_stripe(amount)
    assert from_stripe(sent, currency.lower()) == amount
    assert from_stripe(-sent, currency) == Money(-amount.minor, currency)
    assert 1 <= sent <= AMOUNT_MOST
    decimals = 0 if currency in ZERO_AT_STRIPE else 2 if currency in HUNDREDTHS_OF_NONE else EXPONENTS[currency]
    assert sent * 10 ** EXPONENTS[currency] == amount.minor * 10**decimals
    assert currency not in ENDS_IN_ZERO or sent % 10 == 0


@settings(max_examples=500)
@given(currency=ANY_CURRENCY, value=some.integers(-(10**13), 10**13))
def test_what_stripe_says_is_read_exactly_or_not_at_all(currency: str, value: int) -> None:
    read = from_stripe(value, currency.lower())
    assert read is None or to_stripe(read) == value


def test_every_currency_that_has_no_rule_counts_alike_at_both() -> None:
    """A currency whose decimals differ from Stripe's must have a rule, or be refused."""
    for currency, exponent in EXPONENTS.items():
        if currency not in RULES and currency not in UNITS_UNKNOWN:
            assert exponent == (0 if currency in ZERO_AT_STRIPE else 2), currency


@pytest.mark.parametrize(("value", "currency"), [
    (150, "isk"), (101, "ugx"), (1000, "iqd"), (5, "lyd"), (True, "usd"),
    (1.0, "usd"), ("1", "usd"), (10**30, "usd"), (5, "zzz"), (5, None),
])
def test_what_we_could_not_have_written_is_not_read(value: object, currency: object) -> None:
    assert from_stripe(value, currency) is None


@pytest.mark.parametrize(("currency", "minor", "sent"), [
    ("ISK", 25, "amount=2500"), ("UGX", 3, "amount=300"), ("MGA", 2500, "amount=25"), ("KWD", 2500, "amount=2500"),
    ("JPY", 25, "amount=25"), ("HUF", 1234, "amount=1234"), ("TWD", 150, "amount=150"), ("CLP", 25, "amount=25"),
])
def test_a_whole_refund_keeps_its_amount(stripe: StripeAtSandbox, currency: str, minor: int, sent: str) -> None:
    refund = Refunding(stripe, stripe.open_payment(10000, currency), Money(minor, currency))
    refund.send()
    assert sent in stripe.sandbox.requests(payment_ref=refund.payment_ref)[0]["body"].split("&")
    assert stripe.moved(refund.payment_ref) == [(minor, str(refund.operation_id))]
