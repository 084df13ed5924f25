"""Cells of the crash and zombie matrices: one refund each, interrupted at one point, and what became of it."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.reliability.modes import Mode
from tests.reliability.nursery import Child, End
from tests.reliability.oracle import Asked, ask, judge
from tests.reliability.room import TIMING, Room

DRILL = os.environ.get("COUNTERSIGN_DRILL") == "1"
SEED = int(os.environ.get("COUNTERSIGN_SEED", "20"))


@dataclass(frozen=True, slots=True)
class Point:
    """A process comes through `name` for the nth time."""

    name: str
    nth: int

    def __str__(self) -> str:
        return f"{self.name}:{self.nth}"


@dataclass
class Seen:
    """What a cell showed. `reached` is how many of its interruptions happened; `passes` the longest recovery."""

    cell: str
    wrong: list[str] = field(default_factory=list)
    reached: int = 0
    passes: int = 0
    sends: int = 0
    waited: float = 0.0  # seconds that the others worked while one was paused

    @property
    def complaint(self) -> str:
        return f"{self.cell}: {'; '.join(self.wrong)}"


def start_story(room: Room, asked: Asked, mode: Mode, point: str = "", **more: Any) -> Child:
    return room.nursery.start(
        "story", point=point, order=asked.name, amount=asked.amount, key=asked.name, accepted=str(asked.accepted),
        cancel_in_doubt=mode.cancel, hint=mode.hint, **more,
    )


def tell_story(room: Room, asked: Asked, mode: Mode, point: str = "", **more: Any) -> End:
    """One process tells the story, or as much of it as its point lets it. One that hangs is killed."""
    return finish(room, start_story(room, asked, mode, point, **more))


def finish(room: Room, child: Child) -> End:
    end = room.nursery.wait(child)
    if end.how in {"running", "stopped"}:
        os.kill(child.pid, signal.SIGKILL)
        room.nursery.wait(child)
    return end


def discover(room: Room, mode: Mode) -> list[Point]:
    """Every point that a refund comes through under this mode, in order, by a dry run that must itself end right."""
    asked = ask(room)
    mode.arm(room, asked)
    log = room.folder / f"{asked.name}.points"
    end = tell_story(room, asked, mode, points_log=log)
    seen = Seen(f"dry run of {mode}")
    settle(room, asked, mode, end, seen)
    assert not seen.wrong, seen.complaint
    return points_in(log)


def points_in(log: Path) -> list[Point]:
    passed: dict[str, int] = {}
    points = []
    for name in log.read_text().split():
        passed[name] = passed.get(name, 0) + 1
        points.append(Point(name, passed[name]))
    return points


def choose(points: list[Point], mode: Mode, most: int) -> list[Point]:
    """All of them in a drill; else a sample of those from the first send on, where the modes differ."""
    if DRILL:
        return points
    names = [point.name for point in points]
    sends = "stripe.create.before"
    after = points[names.index(sends if sends in names else "stripe.payment.before"):]
    picked = random.Random(f"{SEED} {mode}").sample(range(len(after)), min(most, len(after)))
    return [after[i] for i in sorted(picked)]


def crash(room: Room, mode: Mode, *points: Point, mutants: tuple[str, ...] = ()) -> Seen:
    """Kill one worker after another, each at its point, and let the last one finish."""
    asked = ask(room)
    mode.arm(room, asked)
    seen = Seen(f"{mode}, killed at {' and '.join(map(str, points))}")
    for point in points:
        seen.reached += tell_story(room, asked, mode, f"{point}:SIGKILL", mutants=mutants).how == "killed"
    settle(room, asked, mode, tell_story(room, asked, mode, mutants=mutants), seen)
    return seen


def pause(room: Room, mode: Mode, point: Point, *, cancel: bool, mutants: tuple[str, ...] = ()) -> Seen:
    """Stop a worker at its point until its lease has ended and another one has worked, then let it wake."""
    asked = ask(room)
    mode.arm(room, asked)
    seen = Seen(f"{mode}, paused at {point}{', then cancelled' if cancel else ''}")
    sleeper = start_story(room, asked, mode, f"{point}:SIGSTOP", mutants=mutants, until_passed=str(point))
    first = room.nursery.wait(sleeper)
    if first.how == "stopped":
        seen.reached = 1
        room.move_clock(2 * TIMING["lease"])
        begun = time.monotonic()
        if cancel:
            room.nursery.do("cancel", key=asked.name)
        tell_story(room, asked, mode, passes=6, mutants=mutants)
        seen.waited = time.monotonic() - begun
        os.kill(sleeper.pid, signal.SIGCONT)
    woken = finish(room, sleeper) if seen.reached else first
    if woken.how not in {"done", "raised"}:
        seen.wrong.append(f"the woken worker was {woken.how}: {woken.log}")
    ends = frozenset({"cancelled"}) if cancel else frozenset()
    settle(room, asked, mode, tell_story(room, asked, mode, mutants=mutants), seen, ends)
    seen.wrong += stale_writes(room, asked, sleeper.pid)
    return seen


def limit(room: Room, mode: Mode, point: Point) -> Seen:
    """Let the time limit of a wake job strike at its point, in the real worker class, and let another worker finish."""
    asked = ask(room)
    mode.arm(room, asked)
    seen = Seen(f"{mode}, time limit at {point}")
    tell_story(room, asked, mode, passes=1)
    end = finish(room, room.nursery.start("rq_worker", point=f"{point}:SIGALRM", timeout=300, passing=point.name))
    if end.how != "done":
        seen.wrong.append(f"the worker was {end.how}: {end.log}")
    elif end.told["passed"] >= point.nth:
        seen.reached = 1
        if end.told["job"] != "failed" or "maximum timeout" not in end.told["why"]:
            seen.wrong.append(f"the job is {end.told['job']} although its time was over: {end.log}")
    settle(room, asked, mode, tell_story(room, asked, mode), seen)
    return seen


def stale_writes(room: Room, asked: Asked, pid: int) -> list[str]:
    """What the woken worker said of a task that somebody else had taken over, under the lease it had lost."""
    sleeper = f"%:{pid}"
    stale = room.ask(
        "WITH mine AS (SELECT a.* FROM runtime_app_attempt a JOIN runtime_app_task t ON t.id = a.task_id"
        " WHERE t.request_key = %s) SELECT e.type FROM runtime_app_event e JOIN mine taken ON taken.task_id = e.task_id"
        " WHERE e.actor LIKE %s AND taken.worker NOT LIKE %s AND e.at > taken.started_at AND NOT EXISTS"
        " (SELECT 1 FROM mine WHERE worker LIKE %s AND fence > taken.fence AND started_at <= e.at)",
        asked.name, f"worker:{sleeper}", sleeper, sleeper,
    )
    return [f"written by the woken worker: {[t for (t,) in stale]}"] if stale else []


def settle(room: Room, asked: Asked, mode: Mode, end: End, seen: Seen, ends: frozenset[str] = frozenset()) -> None:
    """Judge the end of a cell, and take what waits for a person out of the way of the next one."""
    if end.how != "done":
        seen.wrong.append(f"the last story was {end.how}: {end.log}")
    else:
        seen.passes = end.told["passes"]
        if end.told["raised"]:
            seen.wrong.append(f"{end.told['raised']} jobs of the last worker failed: {end.log}")
        if end.told["status"] not in mode.ends | ends:
            seen.wrong.append(f"ended {end.told['status']}")
    seen.wrong += judge(room, asked, twice=mode.twice)
    sent = room.sandbox.requests(payment_ref=asked.payment, method="POST")
    seen.sends = len([r for r in sent if r["path"] == "/v1/refunds"])
    room.db.execute("UPDATE runtime_app_task SET due_at = NULL WHERE request_key = %s", [asked.name])
