"""R3 and R4: whatever worker is killed wherever, the next one finishes, and money moves at most once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.reliability.matrix import DRILL, SEED, Point, choose, crash, discover, points_in, tell_story
from tests.reliability.modes import MODES, Mode
from tests.reliability.oracle import ask
from tests.reliability.room import Room, Rooms
from tests.reliability.tally import Tally

POINTS_A_MODE = 11


@pytest.fixture(scope="module")
def r3(print_line: Callable[[str], None]) -> Iterator[Tally]:
    tally = Tally()
    yield tally
    tally.print(print_line, "R3")


@pytest.mark.timeout(1800 if DRILL else 300)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_a_worker_killed_anywhere_pays_at_most_once_and_loses_nothing(mode: Mode, rooms: Rooms, r3: Tally) -> None:
    """R3, M14, M16, C04: SIGKILL at every point of the dry run; also with a provider that forgets its keys."""
    points = discover(rooms.all[0], mode)
    # The doors and everything before the first send are the same in every mode, so one mode is enough for them.
    plain = mode.name == "ok" and not mode.forgetful
    chosen = points if plain else choose(points, mode, POINTS_A_MODE)
    seen = rooms.each(lambda room, point: crash(room, mode, point), chosen)
    r3.add(seen)
    assert sum(s.reached for s in seen) >= 0.8 * len(seen), "too few of the points were reached to prove anything"


@pytest.mark.timeout(1800 if DRILL else 300)
def test_a_recovery_that_is_killed_too_pays_at_most_once(rooms: Rooms, print_line: Callable[[str], None]) -> None:
    """R4: killed at p, and the recovery at q, which is discovered by a recovery that is left alone."""
    chance = random.Random(f"{SEED} R4")
    firsts, seconds = (40, 8) if DRILL else (12, 3)
    interesting = [m for m in MODES if m.name in {"ok", "answer lost after", "lost before", "500 after"}]
    starts: list[tuple[Mode, Point]] = []
    for mode in interesting:
        points = discover(rooms.all[0], mode)
        starts += [(mode, p) for p in chance.sample(points, min(len(points), firsts * 2 // len(interesting)))]
    starts = chance.sample(starts, firsts)

    def recovery(room: Room, start: tuple[Mode, Point]) -> list[tuple[Mode, Point, Point]]:
        mode, first = start
        asked = ask(room)
        mode.arm(room, asked)
        tell_story(room, asked, mode, f"{first}:SIGKILL")
        log = room.folder / f"{asked.name}.points"
        tell_story(room, asked, mode, points_log=log)
        found, picks = points_in(log), random.Random(f"{SEED} {mode} {first}")
        return [(mode, first, second) for second in picks.sample(found, min(seconds, len(found)))]

    cells = [cell for found in rooms.each(recovery, starts) for cell in found]
    tally = Tally()
    try:
        tally.add(rooms.each(lambda room, cell: crash(room, *cell), cells))
    finally:
        tally.print(print_line, "R4")
