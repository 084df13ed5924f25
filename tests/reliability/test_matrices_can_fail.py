"""R6: the matrices and the scenes prove something only if they turn red when the core is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.reliability import scenes
from tests.reliability.matrix import SEED, Point, crash, discover, pause
from tests.reliability.modes import MODES, Mode
from tests.reliability.mutants import MUTANTS
from tests.reliability.room import Room, Rooms
from tests.reliability.scenes import SCENES, Scene

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
    "sent_again_without_the_lock": ("pause alone", "ok, forgetful", frozenset({"stripe.create.before"})),
}
ON_STAGE: dict[str, Scene] = {
    "compare_skipped": scenes.outside, "outside_not_counted": scenes.outside, "case_does_not_stop": scenes.outside,
    "outside_matched_by_amount": scenes.outside_of_the_same_amount, "alike_is_ours": scenes.like_what_never_arrived,
    "late_truth_ignored": scenes.late, "returned_not_given_back": scenes.back_again,
    "duplicate_without_case": scenes.twice, "total_not_compared": scenes.a_lagging_list,
    "notice_is_believed": scenes.a_lie, "difference_overlooked": scenes.another_amount,
    "named_without_a_look": scenes.a_made_up_reference, "one_person_is_enough": scenes.one_person,
}


@pytest.fixture(scope="module")
def caught(print_line: Callable[[str], None]) -> Iterator[set[str]]:
    names: set[str] = set()
    yield names
    print_line(f"R6 mutants={len(MUTANTS)} caught={len(names)} seed={SEED}")


def test_every_mutant_is_shown_somewhere_and_every_scene_shows_one() -> None:
    assert SHOWN.keys() ^ ON_STAGE.keys() == MUTANTS.keys()
    assert set(ON_STAGE.values()) == set(SCENES)


def test_every_scene_ends_as_it_must(rooms: Rooms) -> None:
    """Rows 7 to 9 and 22 to 24, F33, I10, I12: what the mutants of the core are held against."""
    found = rooms.each(lambda room, scene: scene(room, ()), list(SCENES))
    wrong = {scene.__name__: why for scene, why in zip(SCENES, found, strict=True) if why}
    assert not wrong, wrong


@pytest.mark.parametrize("mutant", ON_STAGE)
def test_a_careless_change_makes_its_scene_end_otherwise(mutant: str, rooms_to_spoil: Rooms, caught: set[str]) -> None:
    """R6: money that moves otherwise than agreed is taken for granted, or nobody is told of it."""
    assert ON_STAGE[mutant](rooms_to_spoil.all[len(caught) % 2], (mutant,)), f"{mutant} went unnoticed"
    caught.add(mutant)


@pytest.mark.parametrize("mutant", SHOWN)
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
    if how.startswith("pause"):
        return pause(room, mode, point, cancel=how == "pause", mutants=(mutant,)).wrong
    return crash(room, mode, point, mutants=(mutant,)).wrong
