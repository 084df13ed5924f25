"""R5: a worker that sleeps through the end of its lease and wakes up can neither pay nor overwrite."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.reliability.matrix import DRILL, Seen, choose, discover, finish, pause, start_story, tell_story
from tests.reliability.modes import MODES, Mode
from tests.reliability.oracle import ask, judge
from tests.reliability.room import Room, Rooms
from tests.reliability.tally import Tally
from tests.worker_process import wait_for

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


def test_a_worker_that_lost_its_lock_and_slept_through_its_lease_sends_nothing(quick_room: Room) -> None:
    """R5, proof.md 0.1: with the lock gone too, it is the deadline on its own clock that keeps it from sending."""
    room, mode = quick_room, BY_NAME["ok"]
    asked = ask(room)
    point = "stripe.create.before:1"
    sleeper = start_story(room, asked, mode, f"{point}:SIGSTOP", until_passed=point)
    assert room.nursery.wait(sleeper).how == "stopped"
    cut = room.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'countersign sender locks'"
        " AND datname = current_database()"
    )
    assert cut == [(True,)]
    over = "SELECT due_at < runtime_now() FROM runtime_app_task WHERE request_key = %s"
    wait_for(lambda: room.ask(over, asked.name) == [(True,)], 30)
    assert room.nursery.do("cancel", key=asked.name) == "executing"
    assert tell_story(room, asked, mode, passes=40).told["status"] == "cancelled"
    os.kill(sleeper.pid, signal.SIGCONT)
    assert finish(room, sleeper).how == "done"
    assert room.sandbox.refunds(asked.payment) == []
    assert not (wrong := judge(room, asked)), wrong
