"""A stage for many refunds at once: real workers, the clock and the web process beside each other, on the product's own
policy of times. Nobody waits: whenever nothing is left to do, both clocks are moved on to what comes next.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from runtime_app.timing import Timing
from runtime_app.trial.cluster import Cluster
from tests import worker_process
from tests.reliability.crowd import SECRET
from tests.reliability.room import TIMING, Room, running_room
from tests.worker_process import Crew, wait_for

_PRODUCT = Timing()
# The product's own times, but for those that are really waited for (sockets, the clock's poll, a wake job), and for the
# first look and the first try again, which wait longer than it takes a slow machine to ask for all and to cancel some.
POLICY: dict[str, Any] = {name: getattr(_PRODUCT, name) for name in TIMING} | {
    "connect_timeout": 1.0, "read_timeout": 2.0, "send_margin": 0.5, "clock_poll": 0.2, "drain_budget": 4.0,
    "reconcile_after": [240, *_PRODUCT.reconcile_after[1:]], "retry_first": 240.0,
}
LONGEST_JUMP = 6 * 3600.0  # what the provider does by itself is seen, and days are over, although nothing is due
_DUE = """
WITH due AS (
    SELECT due_at FROM runtime_app_task WHERE parked_reason IS NULL AND due_at IS NOT NULL
    UNION ALL SELECT due_at FROM runtime_app_intent WHERE done_at IS NULL
    UNION ALL SELECT due_at FROM runtime_app_notice UNION ALL SELECT due_at FROM runtime_app_paymentlook
    UNION ALL SELECT due_at FROM runtime_app_statementday
    UNION ALL SELECT next_check_at FROM runtime_app_operation WHERE state IN ('succeeded', 'failed', 'not_executed')
)
SELECT (SELECT count(*) FROM runtime_app_task WHERE lease_owner IS NOT NULL),
    extract(epoch FROM min(due_at) - runtime_now())::float8 FROM due WHERE due_at IS NOT NULL
"""


@dataclass
class Stage:
    """`accounts` holds the id of each tenant's account; `passed` is by how much the clocks were moved, in seconds."""

    room: Room
    around: Crew  # the web process and the clock
    workers: Crew
    url: str
    accounts: dict[str, str] = field(default_factory=dict)
    passed: float = 0.0
    jumps: int = 0

    def found(self, tenants: Mapping[str, bool], threshold: int = 5000) -> None:
        """Make these tenants with an account each; the provider tells those of its notices that are marked true."""
        self.accounts |= self.room.nursery.do("crowd.found", tenants=list(tenants), threshold=threshold, seconds=300)
        for slug, told in tenants.items():
            address = f"{self.url}/hooks/stripe/{self.accounts[slug]}"
            to = {"notice_url": address, "notice_secret": SECRET} if told else {}
            self.room.sandbox.account(slug, f"sk_test_{slug}", **to)

    def quiet(self, seconds: float = 90.0) -> float | None:
        """Wait until nobody has anything to do; seconds until the next thing is due, None when there is nothing."""
        until = time.monotonic() + seconds
        calm = 0
        while time.monotonic() < until:
            held, due = self.room.ask(_DUE)[0]
            busy = held or (due is not None and due <= 0) or self._told_now()
            calm = 0 if busy else calm + 1
            if calm == 2:
                return None if due is None else float(due)
            time.sleep(0.05)
        self.fail(f"something is still being done after {seconds} s: {held} held, the next due in {due} s")

    def _told_now(self) -> bool:
        return any(not notice["attempts"] for notice in self.room.sandbox.notices(state="waiting"))

    def fail(self, why: str) -> NoReturn:
        """Fail the test, with what the processes said last."""
        programs = (*self.around.programs, *self.workers.programs)
        said = "\n".join(f"--- {p.log.name}\n{p.said()[-2500:]}" for p in programs)
        raise AssertionError(f"{why}\n{said}")

    @contextlib.contextmanager
    def without_workers(self) -> Iterator[None]:
        """End the workers, and start them again afterwards."""
        self.workers.close()
        try:
            yield
        finally:
            self.workers = Crew(*self.workers.programs)

    def jump(self, due: float, since: float = 0.0) -> None:
        """Move both clocks to what is due then; later, the more time has passed, so that many things come together."""
        seconds = max(1.0, min(LONGEST_JUMP, max(due, 0.12 * (self.passed - since))))
        self.room.sandbox.advance(seconds)
        self.passed += seconds
        self.jumps += 1

    def drive(self, over: Callable[[], bool], *, most: float, each: Callable[[], None] = lambda: None) -> None:
        """Go on until `over`, at most so many seconds of the moved clocks; `each` is called at every calm moment."""
        begun = self.passed
        while True:
            due = self.quiet()
            each()
            if over() or self.passed - begun > most:
                return
            self.jump(LONGEST_JUMP if due is None else due, begun)

    def check(self, *, settled: bool = False) -> list[tuple[str, str, str]]:
        """What is broken: the invariant's name, the row, and how."""
        found: list[list[str]] = self.room.nursery.do(
            "crowd.check", control_url=self.room.sandbox.control_url, settled=settled, seconds=120
        )
        return [(name, subject, detail) for name, subject, detail in found]


@contextlib.contextmanager
def running_stage(
    cluster: Cluster, folder: Path, number: int, *, workers: int = 2, environment: Mapping[str, str] | None = None,
    **timing: object,
) -> Iterator[Stage]:
    with (
        running_room(cluster, folder, number, one_clock=True, **{**POLICY, **timing}) as room,
        worker_process.web(room.environment, room.folder / "web.log") as (web, url),
    ):
        around = {**room.environment, **(environment or {})}
        hands = [worker_process.worker(around, room.folder / f"worker-{n}.log") for n in range(workers)]
        stage = Stage(room, Crew(web, worker_process.clock(around, room.folder / "clock.log")), Crew(*hands), url)
        try:
            wait_for(lambda: worker_process.answers(url), 60, web)
            room.sandbox.account("amber", "sk_test_room")  # or it would see everybody's things
            yield stage
        finally:
            stage.workers.close()
            stage.around.close()
