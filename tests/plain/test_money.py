"""Amounts are whole minor units of a known currency, and nothing else passes for one (M07, C41, C43)."""

from __future__ import annotations

from typing import Any

import iso4217
import pytest

from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors
from runtime_app.money import MAX_MINOR, Money, check_currency, check_minor, decimal_text, parse_decimal


@pytest.mark.parametrize(
    "value",
    [True, False, "100", 100.0, 1e2, 10.9, -1, 0, None, [], float("nan"), "1_000", " 12 ", MAX_MINOR + 1, 2**63],
)
def test_only_whole_numbers_in_range_are_amounts(value: Any) -> None:
    with pytest.raises(FieldErrors) as refused:
        check_minor(value)
    assert set(refused.value.errors) == {"amount_minor"}


def test_an_int_of_another_class_is_not_an_amount() -> None:
    class Sneaky(int):
        pass

    with pytest.raises(FieldErrors):
        check_minor(Sneaky(5))


@pytest.mark.parametrize("value", ["usd", "ZZZ", "XTS", "US", "", None, 840, "USD "])
def test_only_known_codes_are_currencies(value: Any) -> None:
    with pytest.raises(FieldErrors):
        check_currency(value)


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [("5.00", "USD", 500), ("5", "USD", 500), ("5.5", "USD", 550), ("500", "JPY", 500), ("1.250", "KWD", 1250),
     ("0.005", "BHD", 5), ("1.255", "KWD", 1255), ("4.35", "EUR", 435)],
)
def test_typed_amounts_are_read_exactly_and_shown_again(text: str, currency: str, minor: int) -> None:
    assert parse_decimal(text, currency) == minor
    assert parse_decimal(decimal_text(minor, currency), currency) == minor


@pytest.mark.parametrize(
    ("text", "currency"),
    [("1.2345", "KWD"), ("500.5", "JPY"), ("1.999", "USD"), ("1,50", "EUR"), ("1e2", "USD"), ("-5", "USD"),
     ("+5", "USD"), ("\uff11\uff10\uff10", "USD"), ("\u0661\u0662", "USD"), ("1_000", "USD"),
     ("100\n", "USD"), ("", "USD"), ("0", "USD"), (".5", "USD"),
     ("00.5", "USD"), ("NaN", "USD"), ("9" * 400, "USD")],
)
def test_anything_else_typed_is_refused_naming_the_field(text: str, currency: str) -> None:
    with pytest.raises(FieldErrors) as refused:
        parse_decimal(text, currency)
    assert set(refused.value.errors) <= {"amount", "amount_minor"}


def test_currencies_never_mix() -> None:
    with pytest.raises(ValueError, match="do not add up"):
        Money(1, "USD") + Money(1, "EUR")
    assert Money(1, "USD") + Money(2, "USD") - Money(3, "USD") == Money(0, "USD")
    assert str(Money(1234567, "JPY")) == "1234567 JPY" and str(Money(-5, "KWD")) == "-0.005 KWD"


def test_the_frozen_exponents_are_those_of_iso_4217() -> None:
    """The table is ours; the package it was taken from says when it grows stale."""
    told = {c.code: c.exponent for c in iso4217.Currency if c.exponent is not None and c.code != "XTS"}
    assert {code: EXPONENTS.get(code) for code in told} == told
