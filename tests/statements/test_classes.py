"""The table of classes by itself: plain values in, a class and what follows out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from runtime_app.adapters.payments.types import LineKind
from runtime_app.money import Money
from runtime_app.reconciliation.classes import CLASSES
from runtime_app.reconciliation.classify import (
    RULES,
    SAYS,
    Facts,
    Ours,
    Then,
    classify,
    classify_unseen,
)
from runtime_app.states import UNRESOLVED, OperationState

S, T = OperationState, Then


def usd(minor: int) -> Money:
    return Money(minor, "USD")


def ours(state: OperationState = S.SUCCEEDED, *recorded: str) -> Ours:
    return Ours(state, usd(2500), "pi_1", frozenset(recorded))


OUT = Facts(LineKind.REFUND, usd(-2500), ours(), "pi_1")
BACK = Facts(LineKind.REFUND_FAILED, usd(2500), ours(), "pi_1")
NOBODYS = Facts(LineKind.REFUND, usd(-2500))


@pytest.mark.parametrize(("facts", "class_name", "then"), [
    (OUT, "MATCHED", T.SETTLED),
    (replace(OUT, payment_ref=""), "MATCHED", T.SETTLED),  # a bank does not name the payment
    (replace(OUT, dressed=True), "FEE_OR_FX", T.SETTLED),
    (replace(OUT, ours=ours(S.RETURNED, "RETURNED")), "MATCHED", T.SETTLED),
    (replace(OUT, ours=ours(S.SUCCEEDED, "LATE_EXECUTION")), "LATE_EXECUTION", T.RECORDED),
    (replace(OUT, ours=ours(S.UNKNOWN)), "RESOLVES_UNKNOWN", T.ASK),
    (replace(OUT, ours=ours(S.PENDING)), "RESOLVES_UNKNOWN", T.ASK),
    (replace(OUT, ours=ours(S.SUBMITTING)), "RESOLVES_UNKNOWN", T.ASK),
    (replace(OUT, ours=ours(S.UNKNOWN), asked=True), "RESOLVES_UNKNOWN", T.WAIT),
    (replace(OUT, ours=ours(S.UNKNOWN), can_ask=False), "RESOLVES_UNKNOWN", T.PROVE),
    (replace(OUT, ours=ours(S.PREPARED)), "STATUS_CONFLICT", T.OPEN),
    (replace(OUT, ours=ours(S.NOT_EXECUTED)), "LATE_EXECUTION", T.ASK),
    (replace(OUT, ours=ours(S.FAILED)), "LATE_EXECUTION", T.ASK),
    (replace(OUT, ours=ours(S.FAILED), can_ask=False), "LATE_EXECUTION", T.OPEN),
    (replace(OUT, ours=ours(S.NOT_EXECUTED), asked=True), "STATUS_CONFLICT", T.OPEN),
    (replace(OUT, ours=ours(S.FAILED), asked=True), "TIMING", T.WAIT),
    (replace(OUT, ours=ours(S.FAILED), asked=True, overdue=True), "STATUS_CONFLICT", T.OPEN),
    (replace(OUT, ours=ours(S.FAILED), nets_out=True), "MATCHED", T.SETTLED),
    (replace(BACK, ours=ours(S.FAILED), nets_out=True), "MATCHED", T.SETTLED),
    (replace(BACK, ours=ours(S.FAILED)), "TIMING", T.WAIT),
    (BACK, "RETURNED", T.ASK),
    (replace(BACK, asked=True), "STATUS_CONFLICT", T.OPEN),
    (replace(BACK, can_ask=False), "RETURNED", T.OPEN),
    (replace(BACK, ours=ours(S.RETURNED, "RETURNED")), "RETURNED", T.RECORDED),
    (replace(BACK, place=2), "STATUS_CONFLICT", T.OPEN),
    (replace(OUT, amount=usd(-2501)), "AMOUNT_OVER", T.OPEN),
    (replace(OUT, amount=usd(-2499)), "AMOUNT_UNDER", T.OPEN),
    (replace(OUT, amount=Money(-2500, "EUR")), "CURRENCY", T.OPEN),
    (replace(OUT, payment_ref="pi_2"), "PARENT", T.OPEN),
    (replace(OUT, payment_ref="pi_2", ours=ours(S.UNKNOWN)), "PARENT", T.ASK),
    (replace(OUT, amount=usd(-1), ours=ours(S.UNKNOWN), asked=True), "AMOUNT_UNDER", T.OPEN),
    (replace(OUT, amount=usd(-1), ours=ours(S.UNKNOWN, "AMOUNT_MISMATCH")), "AMOUNT_UNDER", T.RECORDED),
    (replace(OUT, place=2), "DUPLICATE_EXECUTION", T.ASK),
    (replace(OUT, place=2, asked=True), "DUPLICATE_EXECUTION", T.OPEN),
    (replace(OUT, place=2, ours=ours(S.SUCCEEDED, "DUPLICATE_EXECUTION")), "DUPLICATE_EXECUTION", T.RECORDED),
    (replace(OUT, other_mode=True), "ACCOUNT_OR_MODE", T.OPEN),
    (replace(NOBODYS, elsewhere=True), "ACCOUNT_OR_MODE", T.OPEN),
    (NOBODYS, "MISSING_HERE", T.OPEN),
    (replace(NOBODYS, can_ask_payment=True), "MISSING_HERE", T.ASK_PAYMENT),
    (replace(NOBODYS, can_ask_payment=True, asked=True), "MISSING_HERE", T.OPEN),
    (replace(NOBODYS, can_ask_payment=True, known_outside=True), "MISSING_HERE", T.RECORDED),
    (replace(NOBODYS, kind=LineKind.REFUND_FAILED, amount=usd(2500)), "MISSING_HERE", T.OPEN),
    (replace(NOBODYS, kind=LineKind.DISPUTE), "DISPUTED", T.OPEN),
    (replace(NOBODYS, kind=LineKind.OTHER), "OTHER", T.SETTLED),
    (replace(OUT, kind=LineKind.OTHER), "MATCHED", T.SETTLED),  # it names an operation, whatever the provider calls it
])
def test_each_line_has_its_class_and_what_follows(facts: Facts, class_name: str, then: Then) -> None:
    """money.md 3.5, every class that a line can have."""
    found = classify(facts)
    assert (found.class_name, found.then) == (class_name, then)


@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize(("overdue", "covered"), list(product([False, True], repeat=2)))
def test_nothing_counts_as_missing_before_every_statement_is_there(
    state: OperationState, overdue: bool, covered: bool
) -> None:
    """TIMING becomes MISSING_AT_PROVIDER after the SLA, and from whole days only."""
    found = classify_unseen(state, overdue=overdue, covered=covered)
    if state in UNRESOLVED:
        assert found is not None and (found.class_name, found.then) == ("IN_DOUBT", T.WAIT)
    elif state in {S.SUCCEEDED, S.RETURNED}:
        name = "MISSING_AT_PROVIDER" if overdue and covered else "TIMING"
        assert found is not None and found.class_name == name
    else:
        assert found is None


def test_every_class_has_its_sentence_and_every_case_its_class() -> None:
    """What a rule opens is a class of case that says how grave it is."""
    assert {rule.class_name for rule in RULES} <= SAYS.keys()
    told = {rule.case or rule.class_name for rule in RULES if rule.then in {T.OPEN, T.RECORDED}}
    assert told <= CLASSES.keys()


def test_every_rule_is_reached_by_some_line() -> None:
    """A rule that nothing reaches would be a class that nobody ever sees."""
    names = ("elsewhere", "other_mode", "known_outside", "can_ask_payment", "dressed", "nets_out", "asked", "overdue")
    flags: list[dict[str, Any]] = [{name: True} for name in names]
    recorded = [(), ("DUPLICATE_EXECUTION",), ("RETURNED",), ("LATE_EXECUTION",), ("AMOUNT_MISMATCH",),
                ("CURRENCY_MISMATCH",), ("PARENT_MISMATCH",)]
    amounts = [usd(-2500), usd(2500), usd(-2501), usd(-2499), Money(-2500, "EUR")]
    reached = set()
    for kind, amount, place, can_ask, payment in product(LineKind, amounts, (1, 2), (True, False), ("pi_1", "pi_2")):
        for owner in [None, *(ours(state, *cases) for state in S for cases in recorded)]:
            plain = Facts(kind, amount, owner, payment if owner else "", place=place, can_ask=can_ask)
            for facts in (plain, *(replace(plain, **flag) for flag in flags),
                          replace(plain, asked=True, overdue=True)):
                reached.add(next(n for n, rule in enumerate(RULES) if rule.holds(facts)))
    assert reached == set(range(len(RULES))), [RULES[n].when for n in set(range(len(RULES))) - reached]
