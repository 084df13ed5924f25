"""Two at once on real connections: each task has one winner, and whoever lost is told what is so now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from django.db import connection

from runtime_app import leases, tasks
from runtime_app.births import NewTask, open_tasks
from runtime_app.chronicle import Say
from runtime_app.errors import Conflict
from runtime_app.leases import Claimed
from runtime_app.models import Event, Task
from runtime_app.states import Status
from runtime_app.transitions import NOW, Applied, Guard, Lost, Transition, Wanted, apply
from tests.world import World

T = TypeVar("T")
MANY = 40


def at_once(*acts: Callable[[], T]) -> list[T]:
    """Do these at the same moment, each with a connection of its own."""
    ready = Barrier(len(acts))

    def go(act: Callable[[], T]) -> T:
        try:
            connection.ensure_connection()
            ready.wait(30)
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as threads:
        return [done.result(60) for done in [threads.submit(go, act) for act in acts]]


def opened(world: World, many: int = MANY) -> list[NewTask]:
    new = [
        NewTask(world.amber.id, "noop3", 1, request_key=f"race-{n}", request_sha256="0" * 64, actor="test")
        for n in range(many)
    ]
    assert len(open_tasks(new)) == many
    return new


def claim(worker: str, limit: int = MANY) -> list[Claimed]:
    return leases.claim(lane="default", served=["noop3/1"], worker=worker, limit=limit, seconds=60)


def test_two_workers_that_claim_at_once_never_hold_one_task_both(world: World) -> None:
    """M14: every due task is in exactly one hand."""
    new = opened(world)
    one, two = at_once(lambda: claim("one", 30), lambda: claim("two", 30))
    claimed = [task.id for task in one + two + claim("three")]
    assert Counter(claimed) == Counter(task.id for task in new)
    owners = {row.id: row.lease_owner for row in Task.objects.all()}
    assert all(owners[task.id] == "one" for task in one) and all(owners[task.id] == "two" for task in two)


def test_two_batches_over_the_same_tasks_have_one_winner_each_and_tell_the_losers(world: World) -> None:
    """M13, M14: in opposite orders and without a deadlock; the loser's words are not written."""
    new = opened(world)

    def batch(name: str, of: list[NewTask]) -> list[object]:
        to_ready = Transition(to=Status.READY, events=(Say("task.ready", {"by": name}),), due=NOW)
        return list(apply([Wanted(Guard(task.id, 1, Status.QUEUED), to_ready, name) for task in of]))

    forward, backward = at_once(lambda: batch("forward", new), lambda: batch("backward", new[::-1]))
    for task, mine, other in zip(new, forward, backward[::-1], strict=True):
        lost = [result for result in (mine, other) if isinstance(result, Lost)]
        assert len(lost) == 1 and sum(isinstance(r, Applied) for r in (mine, other)) == 1
        assert (lost[0].status, lost[0].revision) == (Status.READY, 2)
        assert list(Event.objects.filter(task_id=task.id).order_by("seq").values_list("seq", "type")) == [
            (1, "task.opened"), (2, "task.ready"),
        ]


def test_a_worker_and_a_person_at_once_have_one_winner(world: World) -> None:
    """M13, M15: the door moves the fence, so that the worker's step is lost, or it comes after the step and says so."""
    for _ in range(12):
        task = world.ask(world.order(), 1000)
        (held,) = leases.claim(lane="default", served=["refund/1"], worker="slow", limit=5, seconds=60)
        fails = Transition(to=Status.FAILED, events=(Say("task.failed", {"why": "for the race"}),))

        def step(held: Claimed = held, fails: Transition = fails) -> bool:
            return isinstance(apply([Wanted(held.guard, fails, "worker:slow")])[0], Applied)

        def cancel(task: Task = task) -> bool:
            try:
                return tasks.cancel(world.rita, task.id, reason="changed my mind").status == Status.CANCELLED
            except Conflict:
                return False

        stepped, cancelled = at_once(step, cancel)
        assert stepped != cancelled
        task.refresh_from_db()
        assert task.status == ("failed" if stepped else "cancelled")
        assert world.events(task)[-1] == f"task.{task.status}" and len(world.events(task)) == 2
