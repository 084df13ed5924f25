"""The clock: one active loop that rings for whatever is due, in case a ring was lost. It reads PostgreSQL only."""

from __future__ import annotations

import logging
import threading

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from approvals import reminders, rounds, telling
from runtime_app import leases, looks, notices, outbox, rows, statements, sweep, watch
from runtime_app.bell import ring
from runtime_app.ledger.operations import wake_free_siblings, wake_unblocked

log = logging.getLogger(__name__)
_ACTIVE = 7_260_913_001  # the advisory lock of the one active clock; any number may be started


def tick() -> list[str]:
    """Ring once for each lane with something due; returns the lanes rung for."""
    wake_free_siblings()
    wake_unblocked()
    leases.wake_unsuspended()
    statements.open_days()
    lanes = leases.due_lanes(settings.LANES)
    rounds_of_approvals = (rounds, reminders, telling)
    if any(module.is_anything_due() for module in (
        outbox, notices, watch, looks, statements, sweep, *rounds_of_approvals
    )):
        lanes.add("default")
    return [lane for lane in sorted(lanes) if ring(lane)]


def run(poll: float, stop: threading.Event) -> None:
    """Tick every `poll` seconds while this process holds the clock's lock, until `stop` is set."""
    while not stop.wait(poll):
        close_old_connections()
        try:
            if rows.run("SELECT pg_try_advisory_lock(%s)", [_ACTIVE])[0][0]:
                tick()
                rows.run("SELECT pg_advisory_unlock(%s)", [_ACTIVE])
        except DatabaseError:
            log.warning("the database does not answer; the clock tries again", exc_info=True)
            connection.close()
