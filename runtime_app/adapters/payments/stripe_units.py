"""How Stripe counts money, where that differs from ISO 4217, and which amounts it does not move at all."""

from __future__ import annotations

from dataclasses import dataclass

from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors
from runtime_app.money import Money, decimal_text

AMOUNT_MOST = 999_999_999_999  # Stripe takes at most twelve digits


@dataclass(frozen=True, slots=True)
class Rule:
    """`times` turns ISO minor units into Stripe's, or `over` divides them; `step`: minor units come in these only."""

    times: int = 1
    over: int = 1
    step: int = 1
    why: str = ""


_ENDS_IN_ZERO = Rule(step=10, why="Stripe moves {currency} only in steps of {step}.")
RULES: dict[str, Rule] = {
    # No decimals by ISO, yet Stripe counts hundredths and takes whole units only.
    "ISK": Rule(times=100),
    "UGX": Rule(times=100),
    # Two decimals by ISO, none at Stripe.
    "MGA": Rule(over=100, step=100, why="Stripe moves {currency} only in steps of {step}."),
    **dict.fromkeys(("BHD", "JOD", "KWD", "OMR", "TND"), _ENDS_IN_ZERO),
}
_PLAIN = Rule()
# ISO gives these no decimals, three or four, and Stripe's lists of such currencies leave them out: how it would count
# them is not known.
UNITS_UNKNOWN = frozenset({"CLF", "IQD", "LYD", "UYI", "UYW"})


def refusal(amount: Money) -> str | None:
    """A sentence when Stripe cannot move this amount, else None."""
    if amount.currency in UNITS_UNKNOWN:
        return f"Stripe does not say in which units it counts {amount.currency}."
    rule = RULES.get(amount.currency, _PLAIN)
    if amount.minor < 1:
        return "A refund is at least one minor unit."
    if amount.minor % rule.step:
        return rule.why.format(currency=amount.currency, step=decimal_text(rule.step, amount.currency))
    if to_stripe(amount) > AMOUNT_MOST:
        return "Stripe moves amounts of at most twelve digits."
    return None


def to_stripe(amount: Money) -> int:
    rule = RULES.get(amount.currency, _PLAIN)
    return amount.minor * rule.times // rule.over


def from_stripe(value: object, currency: object) -> Money | None:
    """The amount in ISO minor units; None when it is no amount, or in units that we do not know."""
    if type(value) is not int or not isinstance(currency, str) or currency.upper() not in EXPONENTS:
        return None
    if currency.upper() in UNITS_UNKNOWN:
        return None
    rule = RULES.get(currency.upper(), _PLAIN)
    if value % rule.times:
        return None
    try:
        return Money(value // rule.times * rule.over, currency.upper())
    except FieldErrors:
        return None
