"""R5: a worker that sleeps through the end of its lease and wakes up can neither pay nor overwrite."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.reliability.matrix import DRILL, Seen, choose, discover, pause
from tests.reliability.modes import MODES, Mode
from tests.reliability.room import Rooms
from tests.reliability.tally import Tally

BY_NAME = {str(mode): mode for mode in MODES}
# Which mode, whether a cancel is asked for during the sleep, and how many points of it outside of a drill.
CASES = [
    ("ok", True, 50), ("ok", False, 20), ("ok, forgetful", True, 15), ("lost before", True, 25),
    ("lost before, forgetful", False, 20), ("answer lost after", True, 15), ("cancelled at the provider", False, 15),
]


@pytest.fixture(scope="module")
def r5(print_line: Callable[[str], None]) -> Iterator[Tally]:
    tally = Tally()
    yield tally
    tally.print(print_line, "R5", longest_wait_s=f"{max((s.waited for s in tally.seen), default=0.0):.1f}")


@pytest.mark.timeout(1800 if DRILL else 300)
@pytest.mark.parametrize(("mode", "cancel", "most"), [(BY_NAME[m], c, n) for m, c, n in CASES], ids=str)
def test_a_worker_that_wakes_up_late_pays_nothing_and_writes_nothing(
    mode: Mode, cancel: bool, most: int, rooms: Rooms, r5: Tally
) -> None:
    """R5, C22: SIGSTOP at every point, the lease ends, a cancel is asked for, another worker works, SIGCONT."""
    points = discover(rooms.all[0], mode)
    chosen = points if DRILL or most >= len(points) else choose(points, mode, most)
    seen: list[Seen] = rooms.each(lambda room, point: pause(room, mode, point, cancel=cancel), chosen)
    r5.add(seen)
    assert sum(s.reached for s in seen) >= 0.8 * len(seen), "too few of the points were reached to prove anything"
