"""R6: the matrices prove something only if they turn red when the protocol is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.reliability.matrix import SEED, Point, crash, discover, pause
from tests.reliability.modes import MODES, Mode
from tests.reliability.mutants import MUTANTS
from tests.reliability.room import Room, Rooms

BY_NAME = {str(mode): mode for mode in MODES}
CELLS_MOST = 24
# Where each mutant shows itself: paused or killed, in which mode, at which points.
SHOWN: dict[str, tuple[str, str, frozenset[str]]] = {
    "no_sender_lock": ("pause", "ok", frozenset({"stripe.create.before", "apply.committed"})),
    "no_guard": ("pause", "answer lost after", frozenset({"stripe.create.after", "apply.begin"})),
    "send_again_blindly": ("crash", "ok, forgetful", frozenset({"stripe.create.after", "apply.begin"})),
    "a_key_each_send": ("crash", "lost before", frozenset({"stripe.list.after"})),
    "send_before_the_intent": ("crash", "ok, forgetful", frozenset({"stripe.create.after", "apply.begin"})),
    "unknown_means_failed": ("crash", "answer lost after", frozenset({"apply.begin"})),
    "absent_means_never": ("pause", "ok", frozenset({"stripe.create.before", "apply.committed"})),
    "told_before_telling": ("crash", "ok", frozenset({"orders.record.before", "outbox.claim.commit"})),
}


@pytest.fixture(scope="module")
def caught(print_line: Callable[[str], None]) -> Iterator[set[str]]:
    names: set[str] = set()
    yield names
    print_line(f"R6 mutants={len(MUTANTS)} caught={len(names)} seed={SEED}")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_protocol_turns_a_matrix_red(mutant: str, rooms_to_spoil: Rooms, caught: set[str]) -> None:
    """R6: each wrong variant pays twice, loses something or writes what it may not, and the oracle says so."""
    how, name, where = SHOWN[mutant]
    mode = BY_NAME[name]
    points = [p for p in discover(rooms_to_spoil.all[0], mode) if p.name in where]
    random.Random(f"{SEED} {mutant}").shuffle(points)

    def cell(room: Room, point: Point) -> bool:
        return bool(_interrupted(room, mode, point, how, mutant))

    for begin in range(0, min(len(points), CELLS_MOST), 2):
        if any(rooms_to_spoil.each(cell, points[begin : begin + 2])):
            caught.add(mutant)
            return
    pytest.fail(f"{mutant} went unnoticed in {len(points)} cells")


def _interrupted(room: Room, mode: Mode, point: Point, how: str, mutant: str) -> list[str]:
    if how == "pause":
        return pause(room, mode, point, cancel=True, mutants=(mutant,)).wrong
    return crash(room, mode, point, mutants=(mutant,)).wrong
