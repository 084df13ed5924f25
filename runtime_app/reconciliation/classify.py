"""How a statement compares with what we know, as data: the class of every line, and of an operation without a line.

Plain values in, a class and what follows out; nothing here reads a clock, a database or a provider. Nothing found
here moves money or sets an outcome: the provider is asked, or a person is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from runtime_app.adapters.payments.types import LineKind
from runtime_app.money import Money
from runtime_app.states import UNRESOLVED, OperationState

SAYS: dict[str, str] = {
    "MATCHED": "The line and our operation are equal.",
    "FEE_OR_FX": "Equal to what was asked for; the provider took a fee or exchanged it.",
    "OTHER": "No refund: it only counts in the balance.",
    "TIMING": "The other side of it is not due yet.",
    "IN_DOUBT": "Its outcome is not proved yet.",
    "RESOLVES_UNKNOWN": "It shows a refund whose outcome we do not know: the provider is asked about it.",
    "MISSING_AT_PROVIDER": "We have it as done, and no statement shows it in time.",
    "MISSING_HERE": "A booking that we do not know.",
    "AMOUNT_OVER": "More was booked than was asked for.",
    "AMOUNT_UNDER": "Less was booked than was asked for.",
    "CURRENCY": "It was booked in another currency.",
    "PARENT": "It was booked on another payment.",
    "ACCOUNT_OR_MODE": "It belongs to another account, or to the other mode, test or live.",
    "STATUS_CONFLICT": "It contradicts the outcome that we have, and the provider was asked.",
    "DUPLICATE_LINE": "The provider told a line again; it counts once.",
    "DUPLICATE_EXECUTION": "A second booking of one operation.",
    "LATE_EXECUTION": "It was executed although it had counted as refused or not done.",
    "RETURNED": "The money of a refund came back.",
    "DISPUTED": "The customer's bank disputes the payment.",
}
QUIET = frozenset({"MATCHED", "FEE_OR_FX", "OTHER"})  # accounted for, and no more to be said


class Then(StrEnum):
    """What follows. `ASK`: the provider, about the operation; `ASK_PAYMENT`: about all refunds of the payment; `PROVE`:
    the provider cannot be asked, so the line goes through the decision table; `RECORDED`: a case was opened by what
    the provider answered; `OPEN`: a case is opened here."""

    SETTLED = "settled"
    WAIT = "wait"
    ASK = "ask"
    ASK_PAYMENT = "ask_payment"
    PROVE = "prove"
    RECORDED = "recorded"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Ours:
    """The operation that the line is of. `recorded`: the classes of its cases, open or closed."""

    state: OperationState
    amount: Money
    payment_ref: str
    recorded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Facts:
    """One line and what was read for it. Every truth value is a fact somebody read."""

    kind: LineKind
    amount: Money  # signed: negative left the account
    ours: Ours | None = None
    payment_ref: str = ""
    known_outside: bool = False  # the provider has shown it as a refund that was made outside of us
    elsewhere: bool = False  # what it names is an operation of another account
    other_mode: bool = False  # the provider says live for a test account, or the reverse
    dressed: bool = False  # with a fee, or exchanged
    place: int = 1  # among the lines of the operation that go the same way
    nets_out: bool = False  # all lines of the operation add up to nothing
    can_ask: bool = True  # the provider can be asked about an operation
    can_ask_payment: bool = False  # and about the line's payment, which it names
    asked: bool = False  # it has answered since the line came
    overdue: bool = False  # what is still missing should have come by now

    @property
    def came_in(self) -> bool:
        return self.kind == LineKind.REFUND_FAILED or (self.kind != LineKind.REFUND and self.amount.minor > 0)

    @property
    def moved(self) -> int:
        """How much of the operation's money it moved, in the direction of its kind."""
        return self.amount.minor if self.came_in else -self.amount.minor


@dataclass(frozen=True, slots=True)
class Conclusion:
    """`case`: the class of the case that tells of it, where one is opened or was."""

    class_name: str
    then: Then
    case: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    when: str
    holds: Callable[[Facts], bool]
    class_name: str
    then: Then
    case: str = ""  # of a RECORDED one; empty: of the same class


_NOTHING_MOVED = frozenset({OperationState.FAILED, OperationState.NOT_EXECUTED})


def _in_doubt(f: Facts) -> bool:
    return f.ours is not None and f.ours.state in UNRESOLVED


def _unasked(f: Facts) -> bool:
    return f.can_ask and not f.asked


def _state(*states: OperationState) -> Callable[[Facts], bool]:
    return lambda f: f.ours is not None and f.ours.state in states


def _recorded(name: str) -> Callable[[Facts], bool]:
    return lambda f: f.ours is not None and name in f.ours.recorded


def _both(*holds: Callable[[Facts], bool]) -> Callable[[Facts], bool]:
    return lambda f: all(each(f) for each in holds)


def _differs(name: str, known_as: str, says: str, holds: Callable[[Facts], bool]) -> tuple[Rule, ...]:
    """What differs is asked about while the outcome is in doubt, and is a person's as soon as it is not."""
    return (
        Rule(f"{says}, known from the provider", _both(holds, _recorded(known_as)), name, Then.RECORDED, known_as),
        Rule(f"{says}, and its outcome is in doubt", _both(holds, _in_doubt, _unasked), name, Then.ASK),
        Rule(says, holds, name, Then.OPEN),
    )


def _other_payment(f: Facts) -> bool:
    return f.ours is not None and f.payment_ref not in ("", f.ours.payment_ref)


def _other_currency(f: Facts) -> bool:
    return f.ours is not None and f.amount.currency != f.ours.amount.currency


def _went_out(f: Facts) -> bool:
    return not f.came_in


def _came_in(f: Facts) -> bool:
    return f.came_in


def _again(f: Facts) -> bool:
    return f.place > 1


S, T = OperationState, Then
RULES: tuple[Rule, ...] = (
    Rule("a dispute", lambda f: f.kind == LineKind.DISPUTE, "DISPUTED", T.OPEN),
    Rule("no refund, and nothing of ours", lambda f: f.kind == LineKind.OTHER and f.ours is None and not f.elsewhere,
         "OTHER", T.SETTLED),
    Rule("another account's, or the other mode", lambda f: f.elsewhere or f.other_mode, "ACCOUNT_OR_MODE", T.OPEN),
    Rule("nothing of ours, known from the provider", lambda f: f.ours is None and f.known_outside, "MISSING_HERE",
         T.RECORDED, "EXTERNAL_REFUND"),
    Rule("nothing of ours, and the payment can be looked at",
         lambda f: f.ours is None and f.can_ask_payment and not f.asked and not f.overdue, "MISSING_HERE",
         T.ASK_PAYMENT),
    Rule("nothing of ours", lambda f: f.ours is None, "MISSING_HERE", T.OPEN),
    Rule("in doubt, and the provider cannot be asked", lambda f: _in_doubt(f) and not f.can_ask and not f.asked,
         "RESOLVES_UNKNOWN", T.PROVE),
    *_differs("PARENT", "PARENT_MISMATCH", "another payment", _other_payment),
    *_differs("CURRENCY", "CURRENCY_MISMATCH", "another currency", _other_currency),
    *_differs("AMOUNT_OVER", "AMOUNT_MISMATCH", "more than was asked for",
              lambda f: f.ours is not None and f.moved > f.ours.amount.minor),
    *_differs("AMOUNT_UNDER", "AMOUNT_MISMATCH", "less than was asked for",
              lambda f: f.ours is not None and f.moved < f.ours.amount.minor),
    Rule("went out again, known from the provider", _both(_went_out, _again, _recorded("DUPLICATE_EXECUTION")),
         "DUPLICATE_EXECUTION", T.RECORDED),
    Rule("went out again", _both(_went_out, _again, _unasked), "DUPLICATE_EXECUTION", T.ASK),
    Rule("went out again, and the provider does not say so", _both(_went_out, _again), "DUPLICATE_EXECUTION", T.OPEN),
    Rule("came back again", _both(_came_in, _again), "STATUS_CONFLICT", T.OPEN),
    Rule("in doubt", _both(_in_doubt, _unasked), "RESOLVES_UNKNOWN", T.ASK),
    Rule("in doubt, and the provider was asked", _in_doubt, "RESOLVES_UNKNOWN", T.WAIT),
    Rule("proved not to have been sent", _state(S.PREPARED), "STATUS_CONFLICT", T.OPEN),
    Rule("refused or absent; went out and came back", _both(_state(*_NOTHING_MOVED), lambda f: f.nets_out), "MATCHED",
         T.SETTLED),
    Rule("refused or absent, and went out", _both(_state(*_NOTHING_MOVED), _went_out, _unasked), "LATE_EXECUTION",
         T.ASK),
    Rule("refused or absent, went out, and nobody can be asked",
         _both(_state(*_NOTHING_MOVED), _went_out, lambda f: not f.can_ask), "LATE_EXECUTION", T.OPEN),
    Rule("refused, and the other booking of it is not due yet", _both(_state(S.FAILED), lambda f: not f.overdue),
         "TIMING", T.WAIT),
    Rule("refused or absent, and the provider was asked", _state(*_NOTHING_MOVED), "STATUS_CONFLICT", T.OPEN),
    Rule("came back, known from the provider", _both(_came_in, _recorded("RETURNED")), "RETURNED", T.RECORDED),
    Rule("came back", _both(_came_in, _unasked), "RETURNED", T.ASK),
    Rule("came back, and nobody can be asked", lambda f: f.came_in and not f.can_ask, "RETURNED", T.OPEN),
    Rule("came back, and the provider says it is done", _came_in, "STATUS_CONFLICT", T.OPEN),
    Rule("done late, known from the provider", _recorded("LATE_EXECUTION"), "LATE_EXECUTION", T.RECORDED),
    Rule("done, with a fee or exchanged", lambda f: f.dressed, "FEE_OR_FX", T.SETTLED),
    Rule("done", lambda f: True, "MATCHED", T.SETTLED),
)


def classify(facts: Facts) -> Conclusion:
    """The first rule that holds; the rules cover everything."""
    rule = next(rule for rule in RULES if rule.holds(facts))
    tells = rule.then in {Then.RECORDED, Then.OPEN}
    return Conclusion(rule.class_name, rule.then, (rule.case or rule.class_name) if tells else "")


def classify_unseen(state: OperationState, *, overdue: bool, covered: bool) -> Conclusion | None:
    """An operation of which no statement shows that it went out; None when nothing is missing.

    `covered`: every day on which it could have been booked is there, whole. Without that nothing is concluded.
    """
    if state in UNRESOLVED:
        return Conclusion("IN_DOUBT", Then.WAIT)
    if state not in {OperationState.SUCCEEDED, OperationState.RETURNED}:
        return None
    if overdue and covered:
        return Conclusion("MISSING_AT_PROVIDER", Then.OPEN, "MISSING_AT_PROVIDER")
    return Conclusion("TIMING", Then.WAIT)
