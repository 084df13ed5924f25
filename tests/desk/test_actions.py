"""What may be done in which case: every class against every action, and each reason once."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from runtime_app.desk import actions, outcomes
from runtime_app.desk.situation import Shown, Situation
from runtime_app.models import Operation
from runtime_app.reconciliation.classes import BY_PROOF, CLASSES
from tests.desk.conftest import Desk
from tests.desk.test_follow_up import came_back
from tests.world import World

NAMES = [action.name for action in actions.ACTIONS]
ALWAYS = {"query_now", "assign", "snooze", "comment"}
OUTSIDE = {"EXTERNAL_REFUND", "MISSING_HERE"}


def _as(s: Situation, class_name: str, **columns: Any) -> Situation:
    """The same situation, had the case been opened as this class."""
    case = copy.copy(s.case)
    case.class_name = class_name
    for name, value in columns.items():
        setattr(case, name, value)
    return replace(s, case=case)


def _operation(s: Situation, **columns: Any) -> Situation:
    operation = copy.copy(s.operation)
    assert isinstance(operation, Operation)
    for name, value in columns.items():
        setattr(operation, name, value)
    return replace(s, operation=operation)


def _allowed(s: Situation, person: Any) -> set[str]:
    return {offer.name for offer in actions.offers(s, person) if offer.allowed}


def _print(title: str, table: dict[str, set[str]]) -> None:
    print(f"\nACTIONS {title}")
    for class_name, allowed in table.items():
        print(f"  {class_name:22}", " ".join(name if name in allowed else "·" * len(name) for name in NAMES))


def test_every_class_against_every_action(desk: Desk, world: World) -> None:
    """Money 3.7: the table, printed. While in doubt, proved, and where there is no refund of ours at all."""
    _, _, absent = desk.absent()
    doubt = desk.see(desk.olga, absent)
    _, _, back = came_back(desk, world)
    proved = _operation(desk.see(desk.olga, back), state="succeeded")
    nobody = replace(proved, operation=None, task=None)
    tables: dict[str, dict[str, set[str]]] = {"in doubt": {}, "proved": {}, "not ours": {}}
    for name in CLASSES:
        outside = {"acknowledge"} & {"acknowledge" if name in OUTSIDE else ""}
        closes = {"close"} if outcomes.of(name) else set()
        tables["in doubt"][name] = _allowed(_as(doubt, name), desk.olga)
        assert tables["in doubt"][name] == ALWAYS | outside | (
            {"attach", "declare_not_executed"} if name in BY_PROOF else set()), name
        tables["proved"][name] = _allowed(_as(proved, name), desk.olga)
        assert tables["proved"][name] == ALWAYS | outside | closes, name
        tables["not ours"][name] = _allowed(_as(nobody, name), desk.olga)
        assert tables["not ours"][name] == ALWAYS | outside | closes, name
        closed = _as(doubt, name, state="closed", outcome="settled")
        assert _allowed(closed, desk.olga) == {"comment"}, name
    for title, table in tables.items():
        _print(title, table)


def test_nobody_resends_edits_deletes_or_forces(desk: Desk) -> None:
    """Money 3.7, never: the whole list of what there is."""
    assert NAMES == [
        "query_now", "attach", "record_as_found", "acknowledge", "declare_not_executed", "cancel_at_provider",
        "start_compensation", "close", "assign", "snooze", "comment",
    ]


def test_every_refusal_has_a_sentence(desk: Desk, world: World) -> None:
    """M40: a disabled action says why."""
    _, _, absent = desk.absent()
    for person in (desk.olga, world.sam):
        for s in _bent(desk.see(desk.olga, absent)):
            for offer in actions.offers(s, person):
                assert offer.allowed != bool(offer.why), offer
                assert offer.says.endswith(".") and (offer.allowed or offer.why.rstrip().endswith((".", "}"))), offer


def _bent(s: Situation) -> Iterator[Situation]:
    yield s
    for class_name in CLASSES:
        yield _as(s, class_name)
        yield _as(s, class_name, state="closed", outcome="settled")
    yield replace(s, operation=None)


@pytest.mark.parametrize(("state", "shown", "allowed"), [
    ("pending", "requires_action", True), ("pending", "pending", False), ("unknown", "requires_action", False),
])
def test_only_what_the_provider_can_cancel_is_cancelled_there(
    desk: Desk, state: str, shown: str, allowed: bool
) -> None:
    """Row 4."""
    _, _, absent = desk.absent()
    s = _operation(_as(desk.see(desk.olga, absent), "STALE_PENDING"), state=state)
    s = replace(s, shown=(Shown("re_1", "pi", 1000, "USD", shown),))
    assert ("cancel_at_provider" in _allowed(s, desk.olga)) is allowed


def test_a_refund_of_ours_is_never_declared_away(desk: Desk) -> None:
    """Row 18: not while the provider, or a statement, shows one."""
    _, _, absent = desk.absent()
    s = desk.see(desk.olga, absent)
    assert "declare_not_executed" in _allowed(s, desk.olga)
    look = copy.copy(s.last_complete)
    assert look is not None
    look.finding = "found_pending"
    assert "declare_not_executed" not in _allowed(replace(s, last_complete=look), desk.olga)
    assert "declare_not_executed" not in _allowed(_operation(s, provider_ref="re_1"), desk.olga)
    line: Any = object()
    assert "declare_not_executed" not in _allowed(replace(s, lines=(line,)), desk.olga)
    assert "declare_not_executed" not in _allowed(replace(s, last_complete=None), desk.olga)


def test_one_settled_refund_instead_of_ours_is_recorded_and_nothing_else(desk: Desk) -> None:
    """I11: settled, one of them, the one that the provider has named, and not what was asked for."""
    _, _, absent = desk.absent()
    s = _operation(_as(desk.see(desk.olga, absent), "AMOUNT_MISMATCH"), provider_ref="re_1")
    look = copy.copy(s.last_complete)
    assert look is not None and s.operation is not None
    look.finding = "found_mismatch"
    good = Shown("re_1", s.operation.payment_ref, 900, "USD", "succeeded")

    def may(*shown: Shown) -> bool:
        return "record_as_found" in _allowed(replace(s, last_complete=look, shown=shown), desk.olga)

    assert may(good)
    for bad in (
        replace(good, ref="re_2"), replace(good, status="pending"), replace(good, amount_minor=1000),
    ):
        assert not may(bad), bad
    assert not may() and not may(good, replace(good, ref="re_2"))
