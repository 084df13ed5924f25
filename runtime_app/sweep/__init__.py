"""Many outcomes in doubt at once: one worker reads an account's list of refunds and finds ours among them.

The list is read newest first, a hundred a page and at the account's pace, back to before the first of the requests in
doubt. Each refund found is recorded as a look at its operation, with the task in hand. What is not seen is not absent
by that: it goes on with looks of its own. A sweep that is interrupted starts again, and finds less to do.
"""

from __future__ import annotations

import logging
import threading

from django.db import DatabaseError, connection

from runtime_app import rows
from runtime_app.sweep.reader import sweep
from runtime_app.sweep.turn import Turn, claim
from runtime_app.workflows.types import Ports

log = logging.getLogger(__name__)
_AT_ONCE = 4  # sweeps of different accounts beside each other in one process
_running: set[threading.Thread] = set()


def is_anything_due() -> bool:
    return bool(rows.run("SELECT 1 FROM runtime_app_accountpace WHERE sweep_due_at <= (SELECT runtime_now()) LIMIT 1"))


def work(ports: Ports, *, actor: str, stop: threading.Event | None = None) -> int:
    """Make one sweep that is due, here and now; returns how many were made, none or one. It ends early with `stop`."""
    turn = claim(ports.timing.lease)
    if turn is None:
        return 0
    sweep(turn, ports, actor, stop or threading.Event())
    return 1


def begin(ports: Ports, *, actor: str, stop: threading.Event) -> int:
    """Begin the sweeps that are due, each in a thread of its own, since it waits for its provider and its pace."""
    begun = 0
    _running.difference_update([thread for thread in _running if not thread.is_alive()])
    while len(_running) < _AT_ONCE and not stop.is_set() and (turn := claim(ports.timing.lease)) is not None:
        thread = threading.Thread(target=_sweep, args=(turn, ports, actor, stop), name="sweep", daemon=True)
        _running.add(thread)
        thread.start()
        begun += 1
    return begun


def _sweep(turn: Turn, ports: Ports, actor: str, stop: threading.Event) -> None:
    try:
        sweep(turn, ports, actor, stop)
    except DatabaseError:
        log.warning("a sweep was cut off; it starts again when its lease ends", exc_info=True)
    finally:
        connection.close()
