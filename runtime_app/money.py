"""Amounts: whole minor units with an ISO 4217 currency, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors

MAX_MINOR = 10**15  # far below 2^53, so that every JSON reader keeps it exact
_ASCII_AMOUNT = re.compile(r"(0|[1-9][0-9]{0,15})(?:\.([0-9]{1,4}))?", re.ASCII)


def check_currency(value: object, field: str = "currency") -> str:
    """Return the code, or raise FieldErrors naming `field`."""
    if not isinstance(value, str) or value not in EXPONENTS:
        raise FieldErrors({field: "Use an ISO 4217 currency code in capitals, for example EUR."})
    return value


def check_minor(value: object, field: str = "amount_minor") -> int:
    """Return a whole number of minor units in 1..MAX_MINOR; bool, float and text are refused by type."""
    if type(value) is not int or not 1 <= value <= MAX_MINOR:
        raise FieldErrors({field: f"Use a whole number of minor units between 1 and {MAX_MINOR}."})
    return value


@dataclass(frozen=True, slots=True, order=False)
class Money:
    minor: int
    currency: str

    def __post_init__(self) -> None:
        if type(self.minor) is not int or not -MAX_MINOR <= self.minor <= MAX_MINOR:
            raise FieldErrors({"amount_minor": "An amount is a whole number of minor units."})
        check_currency(self.currency)

    def __add__(self, other: Money) -> Money:
        self._same(other)
        return Money(self.minor + other.minor, self.currency)

    def __sub__(self, other: Money) -> Money:
        self._same(other)
        return Money(self.minor - other.minor, self.currency)

    def _same(self, other: Money) -> None:
        if self.currency != other.currency:
            raise ValueError(f"{self.currency} and {other.currency} do not add up")

    def __str__(self) -> str:
        return f"{decimal_text(self.minor, self.currency)} {self.currency}"


def decimal_text(minor: int, currency: str, group: str = "", point: str = ".") -> str:
    """The amount in major units as text, exact, with the currency's own number of decimals."""
    exponent = EXPONENTS[currency]
    sign, digits = ("-" if minor < 0 else ""), str(abs(minor)).rjust(exponent + 1, "0")
    whole, fraction = (digits[:-exponent], digits[-exponent:]) if exponent else (digits, "")
    whole = f"{int(whole):,}".replace(",", group)
    return sign + whole + (point + fraction if fraction else "")


def parse_decimal(text: str, currency: str, field: str = "amount") -> int:
    """Minor units from what a person typed in major units: ASCII digits and at most the currency's decimals."""
    exponent = EXPONENTS[check_currency(currency)]
    match = _ASCII_AMOUNT.fullmatch(text.strip(" "))
    fraction = (match.group(2) or "") if match else ""
    if match is None or len(fraction) > exponent:
        example = "12" + ("." + "3456"[:exponent] if exponent else "")
        raise FieldErrors({field: f"Write the amount in {currency} with digits only, for example {example}."})
    return check_minor(int(match.group(1) + fraction.ljust(exponent, "0")), field)
