"""A few cells of the crash matrix through `manage.py worker`, RQ and the clock, on real time."""

from __future__ import annotations

import signal
from collections import Counter

from tests import worker_process
from tests.reliability.oracle import Asked, ask, judge
from tests.reliability.room import Room
from tests.worker_process import wait_for

POINTS = ("apply.commit:2", "stripe.create.before:1", "stripe.create.after:1", "stripe.list.after:1")


def test_real_workers_killed_one_after_another_pay_once_each(quick_room: Room) -> None:
    """R3, M14, M16: each is killed at its point by RQ's job; the last one and the clock bring everything to its end."""
    room, asked = quick_room, list[Asked]()
    clock = worker_process.clock(room.environment, room.folder / "clock.log")
    worker = worker_process.worker(room.environment, room.folder / "worker.log")
    try:
        clock.start()
        for point in POINTS:
            asked.append(ask(room, amount=3000))
            if point.startswith("stripe.list"):
                room.sandbox.fault("F4", match={"payment_ref": asked[-1].payment})
            room.nursery.do("ask_for", orders=[asked[-1].name], amount=3000)
            worker.start(COUNTERSIGN_POINT=f"{point}:SIGKILL")
            assert worker.wait(60) == -signal.SIGKILL, f"{point} was not reached\n{worker.said()[-2000:]}"
        worker.start()
        wait_for(lambda: not [wrong for one in asked for wrong in judge(room, one)], 90, worker, clock)
    finally:
        worker.end()
        clock.end()
    paid = Counter(refund["payment_ref"] for refund in room.sandbox.refunds())
    assert paid == {one.payment: 1 for one in asked}
