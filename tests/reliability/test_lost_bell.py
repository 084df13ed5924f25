"""C24: what must happen after a commit is in PostgreSQL; Redis may be away, emptied, or never have heard of it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest
from redis import Redis

from tests import worker_process
from tests.reliability.room import Room
from tests.worker_process import Program, wait_for

READY = 200


@contextlib.contextmanager
def working(room: Room, workers: int = 1) -> Iterator[list[Program]]:
    """So many real workers and a clock."""
    programs = [worker_process.worker(room.environment, room.folder / f"worker-{n}.log") for n in range(workers)]
    programs.append(worker_process.clock(room.environment, room.folder / "clock.log"))
    try:
        for program in programs:
            program.start()
        yield programs
    finally:
        for program in programs:
            program.end()


def statuses(room: Room, *keys: str) -> list[str]:
    found = dict(room.ask("SELECT request_key, status FROM runtime_app_task WHERE request_key = ANY(%s)", list(keys)))
    return [found.get(key, "missing") for key in keys]


def post(url: str, room: Room, name: str, amount: int) -> httpx.Response:
    body = {"workflow": "refund", "order_ref": name, "amount_minor": amount, "currency": "USD", "on_behalf_of": "rita"}
    headers = {"Authorization": f"Bearer {room.key}", "Idempotency-Key": name}
    return httpx.post(f"{url}/api/v1/tasks", json=body, headers=headers, timeout=30, trust_env=False)


def paid(room: Room) -> Counter[str]:
    return Counter(refund["payment_ref"] for refund in room.sandbox.refunds())


def test_a_request_and_a_decision_without_redis_are_saved_and_move_when_it_is_back(quick_room: Room) -> None:
    """C24: POST answers 202 and the decision stands; after Redis is back nobody needs to do anything."""
    room, nowhere = quick_room, {**quick_room.environment, "REDIS_URL": f"unix://{quick_room.folder}/no-redis.sock?db=0"}
    asked, decided = room.new_name(), room.new_name()
    for name in (asked, decided):
        room.sandbox.order(name, payments={f"pi_{name}": 9000})
    room.nursery.do("ask_for", orders=[decided], amount=8000)
    room.nursery.do("work")
    with worker_process.web(nowhere, room.folder / "web.log") as (web, url):
        web.start()
        wait_for(lambda: worker_process.answers(url), 60, web)
        assert post(url, room, asked, 1000).status_code == 202
    assert room.nursery.do("approve", key=decided, redis=nowhere["REDIS_URL"]) == "ready"
    assert statuses(room, asked, decided) == ["queued", "ready"]
    with Redis.from_url(room.redis_url) as redis:
        redis.flushdb()
    with working(room) as programs:
        wait_for(lambda: statuses(room, asked, decided) == ["completed"] * 2, 60, *programs)
        wait_for(lambda: not room.ask("SELECT 1 FROM runtime_app_intent WHERE done_at IS NULL"), 30, *programs)
    assert paid(room) == {f"pi_{asked}": 1, f"pi_{decided}": 1}


def test_two_hundred_due_tasks_survive_a_flushed_redis(quick_room: Room) -> None:
    """C24: FLUSHALL and new workers; the sweep finds each task once, beside any number of rings."""
    room = quick_room
    names = [room.new_name() for _ in range(READY)]
    for name in names:
        room.sandbox.order(name, payments={f"pi_{name}": 9000})
    room.nursery.do("ask_for", orders=names, amount=1000)
    with Redis.from_url(room.redis_url) as redis:
        redis.flushall()
    with working(room, workers=2) as programs:
        wait_for(lambda: set(statuses(room, *names)) == {"completed"}, 120, *programs)
    assert paid(room) == {f"pi_{name}": 1 for name in names}


def test_a_web_process_killed_between_commit_and_ring_loses_nothing(quick_room: Room) -> None:
    """C24: the caller got no answer; the same key later names the same task, which has moved by itself."""
    room, name = quick_room, quick_room.new_name()
    room.sandbox.order(name, payments={f"pi_{name}": 9000})
    with worker_process.web(room.environment, room.folder / "web.log") as (web, url):
        web.start(COUNTERSIGN_POINT="births.committed:1:SIGKILL")
        wait_for(lambda: worker_process.answers(url), 60, web)
        with pytest.raises(httpx.TransportError):
            post(url, room, name, 1000)
        assert web.wait() == -9
        assert statuses(room, name) == ["queued"]
        with Redis.from_url(room.redis_url) as redis:
            assert redis.keys("rq:job:*") == [], "nobody was rung"
        with working(room) as programs:
            wait_for(lambda: statuses(room, name) == ["completed"], 60, *programs)
        web.start()
        wait_for(lambda: worker_process.answers(url), 60, web)
        again = post(url, room, name, 1000)
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (202, "true")
    assert again.json()["status"] == "completed"
    assert paid(room) == {f"pi_{name}": 1}
