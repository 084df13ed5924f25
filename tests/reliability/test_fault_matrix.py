"""Every fault of the sandbox against the real stack, cancelled or not, held against the decision table.

PostgreSQL, Redis, the sandbox, two `manage.py worker`, `manage.py clock` and uvicorn are real processes, on the
product's own policy of times; the clocks are moved on whenever nothing is left to do. Notices go through uvicorn's
door, statements are read by the workers' daily round. All cells run beside each other on one stack; a fault that meets
the whole port runs by itself, armed while the worker stands before its send.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime_app.invariants.provider import AT_PROVIDER
from runtime_app.trial.cluster import Cluster
from tests import worker_process
from tests.reliability.cells import QUIET, TOLD, Cell, Seen, arm, asked, cells, look, order
from tests.reliability.fault_table import ROWS
from tests.reliability.stage import LONGEST_JUMP, Stage, running_stage
from tests.sandbox_process import wait_until

DAY = 86400.0
LONGEST = 12 * DAY  # longer than a pending refund may take, and than statements may be late
CELLS = cells()


@pytest.fixture(scope="module")
def stage(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running_stage(cluster, tmp_path_factory.mktemp("faults"), 10) as running:
        running.found({QUIET: False, TOLD: True} | {cell.tenant: False for cell in CELLS if cell.row.alone})
        running.drive(lambda: running.passed > DAY, most=2 * DAY)  # an account has no statement of the day before it
        yield running


@pytest.fixture(scope="module")
def seen(print_line: Callable[[str], None]) -> Iterator[dict[str, Seen]]:
    """By the cell's name: filled by the tests, printed as the matrix."""
    found: dict[str, Seen] = {}
    yield found
    told = [cell for cell in CELLS if cell.name in found]
    bad = [cell for cell in told if found[cell.name].wrong(cell)]
    for cell in told:
        print_line(line(cell, found[cell.name]))
    print_line(f"MATRIX cells={len(told)} faults={len({cell.row.fault for cell in told})} bad={len(bad)}")


def line(cell: Cell, seen: Seen) -> str:
    wish = ("too late" if seen.too_late else "yes") if cell.wished else "no"
    cases = ",".join(sorted(seen.end.cases)) or "-"
    return (
        f"{cell.row.fault:4}{cell.row.what:45} cancel={wish:9}{seen.end.status:12}{cases:21}sends={seen.sends:<3}"
        f"looks={seen.looks:<4}{'BAD' if seen.wrong(cell) else 'ok'}"
    )


_ANSWERED = (
    "SELECT c.ended_at IS NOT NULL FROM runtime_app_call c JOIN runtime_app_operation o ON o.id = c.operation_id"
    " WHERE o.order_ref = %s"
)


_OPERATIONS = "SELECT id FROM runtime_app_operation WHERE order_ref = ANY(%s)"
_HIDING = [cell.name for cell in CELLS if cell.row.hides]


class Watch:
    """Holds everything against the invariants whenever a cell has come to another end. What the provider has done and
    not told yet is held against its ledger only at the end."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.before: dict[str, object] = {}
        self.checks = 0

    def __call__(self) -> None:
        now: dict[str, object] = {name: seen.end for name, seen in look(self.stage).items()}
        if now != self.before:
            self.before = now
            self.checks += 1
            hidden = {str(id) for (id,) in self.stage.room.ask(_OPERATIONS, _HIDING)}
            broken = [b for b in self.stage.check() if b[0] not in AT_PROVIDER or b[1] not in hidden]
            assert not broken, broken


def judge(stage: Stage, own: list[Cell], seen: dict[str, Seen]) -> None:
    found = look(stage)
    seen |= {cell.name: found[cell.name] for cell in own}
    wrong = {str(cell): why for cell in own if (why := found[cell.name].wrong(cell))}
    assert not wrong, "\n".join(f"{cell}: {'; '.join(why)}" for cell, why in wrong.items())
    assert not (broken := stage.check(settled=True)), broken


def test_there_is_a_row_for_every_fault() -> None:
    assert {row.fault for row in ROWS} == {f"F{n}" for n in range(1, 51)}


@pytest.mark.timeout(1500)
def test_every_fault_ends_as_the_table_says(
    stage: Stage, seen: dict[str, Seen], print_line: Callable[[str], None]
) -> None:
    """Done when: F1 to F50, cancelled or not; I1 to I14 after each; at most one execution by our requests. R19: what
    landed after it had been proved absent or refused is found by a notice at once, else by the watch within a day."""
    own = [cell for cell in CELLS if not cell.row.port]
    for cell in own:
        order(stage, cell)
        arm(stage, cell)
    stage.room.nursery.do("crowd.ask", wanted=[asked(cell) for cell in own], seconds=120)
    stage.quiet()
    stage.room.nursery.do("crowd.cancel", keys=[cell.name for cell in own if cell.wished], seconds=120)
    watch = Watch(stage)
    stage.drive(lambda: False, most=LONGEST, each=watch)
    judge(stage, own, seen)
    assert watch.checks >= 10
    late = late_effects(stage, own)
    by_notice, by_watch = (max(late[told], default=0.0) for told in (True, False))
    print_line(
        f"R19 late_effects={sum(map(len, late.values()))} found_by_notice_s={by_notice:.0f}"
        f" found_by_watch_s={by_watch:.0f}"
    )
    assert by_notice < 3600 and by_watch < DAY + 2 * LONGEST_JUMP


def late_effects(stage: Stage, own: list[Cell]) -> dict[bool, list[float]]:
    """Seconds of the moved clocks from the late refund to the case about it, of cells that were told and of others."""
    opened = dict(stage.room.ask(
        "SELECT payment_ref, min(extract(epoch FROM opened_at))::float8 FROM runtime_app_case"
        " WHERE class_name = 'LATE_EXECUTION' GROUP BY 1"
    ))
    made = {refund["payment_ref"]: refund["created"] for refund in stage.room.sandbox.refunds()}
    found: dict[bool, list[float]] = {True: [], False: []}
    for cell in own:
        if cell.payment in opened:
            found[cell.row.told].append(opened[cell.payment] - made[cell.payment])
    return found


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.row.port], ids=str)
def test_a_provider_that_is_gone_when_the_worker_sends(cell: Cell, stage: Stage, seen: dict[str, Seen]) -> None:
    """F1, F50: a real worker is stopped before its send, the provider goes away, and the worker goes on."""
    room, watch = stage.room, Watch(stage)
    order(stage, cell)
    sender = worker_process.worker(room.environment, room.folder / f"sender-{cell.name}.log")
    stage.quiet()
    with stage.without_workers():
        try:
            room.nursery.do("crowd.ask", wanted=[asked(cell)])
            sender.start(COUNTERSIGN_POINT="stripe.create.before:1:SIGSTOP")
            wait_until(lambda: _is_stopped(sender.pid), 60)
            arm(stage, cell)
            os.kill(sender.pid, signal.SIGCONT)
            wait_until(lambda: room.ask(_ANSWERED, cell.name) == [(True,)], 60)
        finally:
            sender.end()
    stage.quiet()
    if cell.wished:
        room.nursery.do("crowd.cancel", keys=[cell.name])
    stage.drive(lambda: stage.passed > 0, most=600, each=watch)
    if cell.row.fault == "F1":
        room.sandbox.clear_faults()
    stage.drive(lambda: look(stage)[cell.name].end == cell.expected, most=2 * DAY, each=watch)
    judge(stage, [cell], seen)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
