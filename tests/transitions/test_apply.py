"""The one writer: guarded, set-based, and everything of a transition together or not at all (M12, M13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from runtime_app import chronicle, jobs, leases, rows
from runtime_app.chronicle import Say
from runtime_app.ledger.balances import EndHold
from runtime_app.models import Attempt, Event, EventPayload, Hold, Intent, Task
from runtime_app.states import Status
from runtime_app.transitions import NEVER, Applied, Guard, Lost, Transition, Wanted, apply, apply_one
from tests.world import World


def _cancelled(why: str = "test") -> Transition:
    return Transition(to=Status.CANCELLED, events=(Say("task.cancelled", {"why": why}),))


def _guard(task: Task, **other: Any) -> Guard:
    return Guard(**{"task_id": task.id, "revision": task.revision, "status": Status(task.status), **other})


@pytest.mark.parametrize("other", [{"revision": 2}, {"status": Status.READY}, {"fence": 7}])
def test_a_lost_guard_changes_nothing_and_is_told_what_is_so(world: World, other: dict[str, Any]) -> None:
    task = world.ask(world.order(), 6000)
    to = Status.FAILED if "status" in other else Status.CANCELLED
    result = apply_one(_guard(task, **other), Transition(to=to, events=(Say("task.failed"),)), actor="test")
    assert result == Lost(task.id, Status.QUEUED, 1)
    task.refresh_from_db()
    assert (task.status, task.event_seq) == ("queued", 1)


def test_in_a_batch_each_loser_drops_out_alone(world: World) -> None:
    tasks = [world.ask(world.order(), 6000) for _ in range(6)]
    wanted = [Wanted(_guard(t, revision=1 if i % 2 else 5), _cancelled(), "test") for i, t in enumerate(tasks)]
    results = apply(wanted)
    assert [isinstance(r, Applied) for r in results] == [bool(i % 2) for i in range(6)]
    assert [Task.objects.get(id=t.id).status for t in tasks] == ["queued", "cancelled"] * 3


def test_an_illegal_move_is_a_programming_error_and_writes_nothing(world: World) -> None:
    task = world.ask(world.order(), 6000)
    with pytest.raises(ValueError, match="no move"):
        apply_one(_guard(task), Transition(to=Status.COMPLETED), actor="test")
    with pytest.raises(ValueError, match="no event type"):
        Say("task.exploded")


def test_status_event_and_rows_commit_together_or_not_at_all(world: World) -> None:
    """M13: the last row of the transaction fails, and nothing of it is there."""
    task = world.ask(world.order(), 6000)

    class Broken(EndHold):
        @classmethod
        def write(cls, wanted: Any) -> None:
            rows.run("SELECT 1/0")

    with pytest.raises(DatabaseError):
        failing = Transition(to=Status.FAILED, events=(Say("task.failed"),), parts=(Broken(False),))
        apply_one(_guard(task), failing, actor="test")
    task.refresh_from_db()
    assert (task.status, task.revision, Event.objects.filter(task=task).count()) == ("queued", 1, 1)


def test_the_same_statements_serve_a_batch_of_any_size(world: World) -> None:
    """The shape decides the speed: statements depend on the kinds of rows, never on the number of tasks."""

    def statements(many: int) -> int:
        tasks = [world.ask(world.order(), 6000) for _ in range(many)]
        with _counted() as counted:
            apply([Wanted(_guard(t), _cancelled(), "test") for t in tasks])
        return counted.count

    assert statements(2) == statements(25)


class _counted:
    def __enter__(self) -> _counted:
        self.count, self._run = 0, rows.run

        def run(query: str, params: Sequence[Any] = ()) -> list[rows.Row]:
            self.count += 1
            return self._run(query, params)

        rows.run = run
        return self

    def __exit__(self, *_: object) -> None:
        rows.run = self._run


def test_a_door_that_moves_a_task_takes_it_from_the_worker_that_holds_it(world: World) -> None:
    """M18: the fence grows, so what the worker decides on the old state comes too late."""
    task = world.ask(world.order(), 6000)
    claimed = leases.claim(lane="default", served=["refund/1"], worker="w1", limit=5, seconds=60)
    held = next(c for c in claimed if c.id == task.id)
    assert isinstance(apply_one(_guard(task), _cancelled("by a person"), actor="person"), Applied)
    late = apply_one(held.guard, Transition(to=Status.FAILED, events=(Say("task.failed"),)), actor="w1")
    assert isinstance(late, Lost) and late.status == Status.CANCELLED


def test_only_the_holder_of_the_fence_commits_and_an_expired_lease_is_claimed_again(world: World) -> None:
    """M18: a worker that comes back after its lease expired changes nothing."""
    task = world.ask(world.order(), 6000)
    first = leases.claim(lane="default", served=["refund/1"], worker="w1", limit=5, seconds=60)[0]
    assert leases.claim(lane="default", served=["refund/1"], worker="w2", limit=5, seconds=60) == []
    world.clock(seconds=61)
    second = leases.claim(lane="default", served=["refund/1"], worker="w2", limit=5, seconds=60)[0]
    assert (first.id, second.id, second.fence) == (task.id, task.id, first.fence + 1)
    assert isinstance(apply_one(first.guard, _cancelled(), actor="w1"), Lost)
    assert leases.renew([(first.id, first.fence)], worker="w1", seconds=60) == set()
    assert leases.renew([(second.id, second.fence)], worker="w2", seconds=60) == {task.id}
    assert isinstance(apply_one(second.guard, _cancelled(), actor="w2"), Applied)
    assert Attempt.objects.filter(task=task).count() == 2


def test_a_released_lease_is_due_at_once_and_does_not_count_as_a_start(world: World) -> None:
    task = world.ask(world.order(), 6000)
    held = leases.claim(lane="default", served=["refund/1"], worker="w1", limit=5, seconds=60)[0]
    leases.release([(held.id, held.fence)], worker="w1")
    again = leases.claim(lane="default", served=["refund/1"], worker="w2", limit=5, seconds=60)[0]
    assert (again.id, again.starts) == (task.id, 1)


def test_a_worker_claims_only_the_versions_it_serves(world: World) -> None:
    world.ask(world.order(), 6000)
    assert leases.claim(lane="default", served=["refund/2"], worker="w1", limit=5, seconds=60) == []
    assert leases.claim(lane="slow", served=["refund/1"], worker="w1", limit=5, seconds=60) == []


def test_every_event_is_linked_to_the_one_before_it(world: World) -> None:
    """M14: the chain of record hashes ends in the task's own head, and payloads fit their digests."""
    import hashlib

    task = world.ask(world.order(), 600)
    world.finish(task)
    head = b""
    for event in Event.objects.filter(task=task).order_by("seq"):
        payload = EventPayload.objects.filter(task=task, seq=event.seq).first()
        text = chronicle.canonical(payload.data) if payload else ""
        assert hashlib.sha256(text.encode()).digest() == bytes(event.payload_sha256)
        head = chronicle.link(
            head, task_id=task.id, seq=event.seq, type=event.type, actor=event.actor, at=event.at,
            payload_sha256=bytes(event.payload_sha256),
        )
        assert head == bytes(event.chain)
    assert bytes(task.event_head) == head


def test_a_waiting_task_holds_no_lease_and_no_worker(world: World) -> None:
    """M19: nothing is kept while people think; the deadline is a time in the row."""
    task = world.ask(world.order(), 6000)
    world.approval(task)
    task.refresh_from_db()
    assert task.lease_owner is None and task.due_at is not None and task.due_at > task.status_since
    assert world.drain.hands == {} and not Hold.objects.exists()
    jobs.relay()  # who may decide is told once, and nothing of that stays
    assert not Intent.objects.filter(done_at=None).exists()


def test_a_task_that_keeps_raising_is_parked_and_the_rest_goes_on(world: World) -> None:
    """M25: used-up retries park and never end a task."""
    broken, fine = world.ask(world.order(), 600), world.ask(world.order(), 600)
    Task.objects.filter(id=broken.id).update(state={"waiting_for": {}, "order": {}, "material": {}}, reason="x" * 500)
    before = world.drain._start

    def start(hands: Any) -> Any:
        for hand in hands:
            if hand.task.id == broken.id:
                hand.task.state = None  # what a handler of a newer release might leave to an older one
        return before(hands)

    world.drain._start = start  # type: ignore[method-assign]
    world.until(lambda: Task.objects.get(id=broken.id).parked_reason == "dead_letter")
    world.finish(fine)
    broken.refresh_from_db()
    assert fine.status == "completed" and broken.status == "queued"
    assert NEVER is None and "task.parked" in world.events(broken)


def test_a_wait_needs_no_query_per_task(world: World) -> None:
    """The net under lost rings asks once a lane, however many tasks wait."""
    for _ in range(3):
        world.ask(world.order(), 6000)
    with CaptureQueriesContext(connection):
        assert leases.due_lanes(["default", "slow"]) == {"default"}
