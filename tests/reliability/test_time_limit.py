"""C22: the queue's time limit strikes in the middle of a job, and nothing is believed of it but that it struck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from runtime_app.bell import ADVANCE
from runtime_app.trial.cluster import Cluster
from tests import worker_process
from tests.reliability.matrix import DRILL, Seen, limit, points_in, tell_story
from tests.reliability.modes import MODES
from tests.reliability.oracle import ask, judge
from tests.reliability.room import Rooms, running_room
from tests.reliability.tally import Tally
from tests.worker_process import wait_for

BY_NAME = {str(mode): mode for mode in MODES}


@pytest.mark.timeout(900 if DRILL else 300)
@pytest.mark.parametrize("name", ["ok", "answer lost after"])
def test_a_time_limit_that_strikes_anywhere_is_seen_and_harmless(
    name: str, rooms: Rooms, print_line: Callable[[str], None]
) -> None:
    """C22: also inside a commit and inside the code that records the outcome; no handler takes it for its own error."""
    mode, room = BY_NAME[name], rooms.all[0]
    asked = ask(room)
    mode.arm(room, asked)
    tell_story(room, asked, mode, passes=1)
    log = room.folder / f"{asked.name}.points"
    room.nursery.wait(room.nursery.start("rq_worker", points_log=log, timeout=300, passing=""))
    tell_story(room, asked, mode)
    assert not (wrong := judge(room, asked)), wrong
    tally = Tally()
    seen: list[Seen] = rooms.each(lambda room, point: limit(room, mode, point), points_in(log))
    try:
        tally.add(seen)
        assert sum(s.reached for s in seen) >= 0.8 * len(seen), "too few of the points were reached to prove anything"
    finally:
        tally.print(print_line, f"C22 {name!r}")


def test_a_time_limit_during_the_call_leaves_the_truth_to_be_found_out(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """C22: the provider books after one second and answers after five; the job may take two."""
    timing: dict[str, Any] = {"lease": 20.0, "read_timeout": 8.0, "clock_poll": 0.2, "reconcile_after": [0.5, 0.5, 1]}
    mode = BY_NAME["ok"]
    with running_room(cluster, tmp_path_factory.mktemp("limit"), 7, **timing) as room:
        asked = ask(room)
        room.sandbox.fault("F5", match={"payment_ref": asked.payment}, commit_after=1, seconds=4)
        tell_story(room, asked, mode, passes=1)
        with Redis.from_url(room.redis_url) as redis:
            redis.flushdb()
            queue = Queue("default", connection=redis, serializer=JSONSerializer)
            job = queue.enqueue_call(ADVANCE, kwargs={"lane": "default"}, timeout=2, failure_ttl=600)
            worker = worker_process.worker(room.environment, room.folder / "worker.log")
            clock = worker_process.clock(room.environment, room.folder / "clock.log")
            try:
                worker.start()

                def failed() -> bool:
                    return Job.fetch(job.id, connection=redis, serializer=JSONSerializer).is_failed

                wait_for(failed, 60, worker)
                status = "SELECT status FROM runtime_app_task WHERE request_key = %s"
                assert room.ask(status, asked.name) == [("reconciling",)]
                steps = room.ask(
                    "SELECT s.name FROM runtime_app_step s JOIN runtime_app_task t ON t.id = s.task_id"
                    " WHERE t.request_key = %s", asked.name,
                )
                assert ("cut off by the time limit",) in steps
                clock.start()
                wait_for(lambda: room.ask(status, asked.name) == [("completed",)], 60, worker, clock)
                wait_for(lambda: not judge(room, asked), 30, worker, clock)
            finally:
                worker.end()
                clock.end()
        sent = room.sandbox.requests(payment_ref=asked.payment, method="POST")
        posts = [r for r in sent if r["path"] == "/v1/refunds"]
        assert len(posts) == 1
        room.check()
