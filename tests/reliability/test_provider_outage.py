"""R8, F50: an hour without the provider and a thousand outcomes in doubt, which end right, by sweep, at its pace."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from runtime_app.trial.cluster import Cluster
from tests import worker_process
from tests.reliability.room import QUICK, Room, running_room
from tests.worker_process import Crew, wait_for

EXECUTED, QUEUED, LOST = 400, 300, 300
TASKS = EXECUTED + QUEUED + LOST
RATE, BURST = 60, 40
# The schedule is the product's own, on a clock that is moved; only the time that nobody waits for is shortened.
TIMING: dict[str, Any] = QUICK | {
    "reconcile_after": [5, 15, 45, 120, 300, 900], "reconcile_every": 900, "absent_age": 300.0, "absent_count": 4,
    "max_in_flight": 3600.0, "read_timeout": 5.0, "lease": 20.0, "look_rate": RATE, "look_burst": BURST,
    "closed_first": 5.0, "closed_most": 300.0, "sweep_every": 60.0,
}
STEP = 400.0  # nine times it is the hour; each is longer than the provider is left alone at most
AHEAD = 120.0


@dataclass
class Outage:
    room: Room
    crew: Crew

    def advance(self, seconds: float) -> None:
        """Both clocks, the provider's first: nothing of ours may be older than it is there."""
        if not self.room.sandbox.advance(seconds)["product_clock_moved"]:
            self.room.move_clock(seconds)

    def states(self) -> Counter[str]:
        told = self.room.ask("SELECT state, count(*) FROM runtime_app_operation GROUP BY 1")
        return Counter(dict(told))

    def wait(self, true: Callable[[], Any], seconds: float = 60) -> Any:
        return wait_for(true, seconds, *self.crew.programs)


@pytest.fixture
def outage(cluster: Cluster, tmp_path: Any) -> Iterator[Outage]:
    with running_room(cluster, tmp_path, 6, threshold=5000, **TIMING) as room:
        crew = Crew(
            worker_process.worker(room.environment, room.folder / "worker-1.log"),
            worker_process.worker(room.environment, room.folder / "worker-2.log"),
            worker_process.clock(room.environment, room.folder / "clock.log"),
        )
        try:
            yield Outage(room, crew)
        finally:
            crew.close()
        room.check()


def all_in_doubt(outage: Outage) -> None:
    """A thousand sends: executed and not answered, queued inside the provider, never arrived; and nobody can ask."""
    sandbox, names = outage.room.sandbox, [f"out-{n}" for n in range(TASKS)]
    sandbox.fault("F50", on=["list", "retrieve"], seconds=3600)
    sandbox.fault("F4", times=EXECUTED, on="create")
    sandbox.fault("F20", times=QUEUED, on="create", seconds=1800)
    sandbox.fault("F2", times=LOST, on="create")
    for name in names:
        sandbox.order(name, payments={f"pi_{name}": 5000})
    outage.room.nursery.do("ask_for", orders=names, amount=1200)
    outage.wait(lambda: outage.states()["unknown"] == TASKS, 150)
    sandbox.fault("F50", seconds=3600)  # from now on nothing of it answers


def _is_asked_again(outage: Outage, first: str, seen_before: int) -> bool:
    return len(outage.room.sandbox.requests(after=first)) > seen_before and is_heard(outage)


def test_a_thousand_outcomes_in_doubt_end_right_after_an_hour_without_the_provider(
    outage: Outage, print_line: Callable[[str], None]
) -> None:
    """M23, M24, F50, F20, F4, F2: nothing doubled, nothing lost, nobody needed, and the provider's rate kept."""
    all_in_doubt(outage)
    sandbox, begun = outage.room.sandbox, time.monotonic()
    first = sandbox.requests()[-1]["id"]
    for _ in range(9):
        seen_before = len(sandbox.requests(after=str(first)))
        outage.advance(STEP)
        outage.wait(partial(_is_asked_again, outage, str(first), seen_before))
    while (known := outage.states())["succeeded"] < TASKS:
        assert time.monotonic() < begun + 240, known
        outage.wait(lambda: is_quiet(outage))
        if outage.states() == known:
            outage.advance(AHEAD)
    outage.wait(lambda: not outage.room.ask("SELECT 1 FROM runtime_app_task WHERE status <> 'completed' LIMIT 1"))
    report(outage, asked(sandbox.requests(after=str(first))), print_line)


def is_heard(outage: Outage) -> bool:
    """Nobody waits for an answer."""
    return not outage.room.ask("SELECT 1 FROM runtime_app_task WHERE lease_owner IS NOT NULL LIMIT 1")


def is_quiet(outage: Outage) -> bool:
    """Nothing is due or put off by its pace, nothing in hand, no list being read: only the clock can change something.
    """
    return not outage.room.ask(
        "SELECT 1 FROM runtime_app_task WHERE due_at <= runtime_now() OR lease_owner IS NOT NULL UNION ALL"
        " SELECT 1 FROM runtime_app_operation WHERE next_check_at <= runtime_now() AND state IN ('pending', 'unknown')"
        " UNION ALL SELECT 1 FROM runtime_app_accountpace WHERE sweep_due_at IS NOT NULL LIMIT 1"
    )


def asked(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [r for r in requests if r["path"].startswith("/v1/")]


def report(outage: Outage, requests: list[dict[str, Any]], print_line: Callable[[str], None]) -> None:
    refunds = Counter(r["payment_ref"] for r in outage.room.sandbox.refunds())
    doubled, lost = sum(n > 1 for n in refunds.values()), TASKS - len(refunds)
    people = outage.room.ask("SELECT count(*) FROM runtime_app_case")[0][0]
    pages = sum(r["path"].startswith("/v1/refunds?") and "payment_intent" not in r["path"] for r in requests)
    looks = sum("payment_intent=" in r["path"] for r in requests)
    away = sum(r["fault"] == "F50" for r in requests)
    times = sorted(float(r["at"]) for r in requests)
    print_line(
        f"OUTAGE operations={TASKS} pages={pages} looks={looks} peak_rate={most_within(times, 1.0)} people={people}"
        f" doubled={doubled} lost={lost} asked_while_away={away}"
    )
    assert (people, doubled, lost) == (0, 0, 0)
    # What had been granted may reach the wire a little later than it was granted.
    assert most_within(times, 10.0) <= 10 * RATE + BURST + 2 * 4 * 3
    assert away < 60, "a provider that is away was asked again and again"
    # Seven hundred were there and a page shows a hundred; the list is read anew for what was sent again, in three
    # groups at most, as their looks were spread. Each of the nine hours' steps may have tried a page in vain.
    assert 7 <= pages <= 9 + 4 * (TASKS // 100)
    assert looks < TASKS + 5 * LOST


def most_within(times: list[float], seconds: float) -> int:
    return max(bisect_left(times, start + seconds) - n for n, start in enumerate(times))
