"""Whether what came in is the whole day. Until it is, the day cannot be closed, and nothing counts as missing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from runtime_app.adapters.payments import types
from runtime_app.errors import FieldErrors
from runtime_app.models import Statement, StatementDay
from runtime_app.money import Money

NOT_YET = "There is no statement of this day yet."
CONTRADICTS = "and was told as"  # in the trouble of a statement that tells a line otherwise than before
MOST = 300


def inner_trouble(told: types.Statement, counted: Sequence[types.StatementLine]) -> list[str]:
    """What does not add up in the statement itself. `counted` are its lines, each reference once, that are this day's.

    Every sentence says by how much.
    """
    troubles = [told.trouble] if told.trouble else []
    distinct = len({line.ref for line in told.lines})
    if told.count_told is not None and told.count_told not in (distinct, len(told.lines)) and not told.trouble:
        troubles.append(f"The provider counts {told.count_told} lines and lists {distinct}.")
    if told.opening is not None and told.closing is not None:
        troubles += _balance_trouble(told.opening, told.closing, counted)
    return troubles


def _balance_trouble(opening: Money, closing: Money, counted: Sequence[types.StatementLine]) -> list[str]:
    booked = [line.booked or line.amount for line in counted]
    if {opening.currency, closing.currency, *(m.currency for m in booked)} != {opening.currency}:
        return ["The lines and the balances are not in one currency."]
    total = sum(m.minor for m in booked)
    missing = closing.minor - opening.minor - total
    if not missing:
        return []
    currency = opening.currency
    return [f"It does not add up: opening {opening}, lines {_shown(total, currency)}, closing {closing};"
            f" {_shown(missing, currency)} is not explained by a line."]


def _shown(minor: int, currency: str) -> str:
    """Sums may be larger than an amount may be."""
    try:
        return str(Money(minor, currency))
    except FieldErrors:
        return f"{minor} minor units of {currency}"


def governing(told: Sequence[Statement]) -> Statement | None:
    """Of the statements of one day, oldest first: the one that is the whole day, if one is.

    One that is whole by itself speaks for the day unless a later one shows other lines or other balances.
    """
    for place in reversed(range(len(told))):
        one = told[place]
        if not one.trouble and all(_agrees(later, one) for later in told[place + 1:]):
            return one
    return None


def _agrees(later: Statement, one: Statement) -> bool:
    balances = (later.opening_minor, later.closing_minor)
    same = balances in ((None, None), (one.opening_minor, one.closing_minor))
    return later.lines_new == 0 and same and CONTRADICTS not in later.trouble


def whole(day: StatementDay) -> Statement | None:
    """The statement that is the whole day, by itself, if one is."""
    return governing(list(Statement.objects.filter(day=day).order_by("taken_at", "id")))


def judge(day: StatementDay) -> str:
    """Why what came in is not the whole day, in a sentence; empty when it is. Reads the days around it too."""
    told = list(Statement.objects.filter(day=day).order_by("taken_at", "id"))
    if not told:
        return NOT_YET
    one = governing(told)
    if one is None:
        other = "The statements of this day show different lines, and none of them shows all."
        return next((s.trouble for s in reversed(told) if s.trouble), other)
    return (_number_trouble(day, one) or _opening_trouble(day, one))[:MOST]


def _number_trouble(day: StatementDay, one: Statement) -> str:
    number = _number(one)
    before = (
        Statement.objects.filter(day__account_id=day.account_id, day__day__lt=day.day).exclude(sequence="")
        .select_related("day").order_by("-day__day", "-taken_at").first()
    )
    known = _number(before)
    if number is None or before is None or known is None or number == known + 1:
        return ""
    if number <= known:
        started_anew = day.day.year > before.day.day.year
        return "" if started_anew else f"Statement number {number} does not follow number {known} of {before.day.day}."
    gap = f"number {known + 1} is" if number == known + 2 else f"numbers {known + 1} to {number - 1} are"
    return f"A statement is missing before this one: {gap} not there."


def _number(statement: Statement | None) -> int | None:
    text = statement.sequence if statement is not None else ""
    return int(text) if text.isascii() and text.isdigit() else None


def _opening_trouble(day: StatementDay, one: Statement) -> str:
    told = list(
        Statement.objects.filter(day__account_id=day.account_id, day__day=day.day - timedelta(days=1))
        .order_by("taken_at", "id")
    )
    before = governing(told)
    if before is None or before.closing_minor is None or one.opening_minor is None:
        return ""
    if (before.currency, before.closing_minor) == (one.currency, one.opening_minor):
        return ""
    return (f"The opening balance {_shown(one.opening_minor, one.currency)} is not the closing balance of the day"
            f" before, {_shown(before.closing_minor, before.currency)}.")
