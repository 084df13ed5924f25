"""Named fault points: called at every commit and every network boundary, doing nothing unless a test arms one.

A test arms a process through the environment: `COUNTERSIGN_POINTS_LOG` names a file that every point passed is
appended to (so that a dry run discovers them), and `COUNTERSIGN_POINT=name:nth:SIGNAL` sends this process that
signal when it passes the point for the nth time.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter

_log = os.environ.get("COUNTERSIGN_POINTS_LOG", "")
_armed = os.environ.get("COUNTERSIGN_POINT", "")
_passed: Counter[str] = Counter()
_lock = threading.Lock()


def arm(armed: str = "", log: str = "") -> None:
    """Arm this process as the environment would, counting anew: for one that was forked after this module was read."""
    global _armed, _log
    _armed, _log = armed, log
    _passed.clear()


def passed(name: str) -> int:
    """How often this process has passed the point, while it is armed."""
    return _passed[name]


def point(name: str) -> None:
    """Say that the process is at `name` now."""
    if not (_log or _armed):
        return
    with _lock:
        _passed[name] += 1
        passed = _passed[name]
        if _log:
            with open(_log, "a") as log:
                log.write(name + "\n")
    if _armed:
        wanted, nth, signal_name = _armed.split(":")
        if wanted == name and passed == int(nth):
            # To this very thread: of a process with several it could go on for a while before another one stops it.
            signal.pthread_kill(threading.get_ident(), signal.Signals[signal_name])
