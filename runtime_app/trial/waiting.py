from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(ask: Callable[[], T | None], *, seconds: float, every: float = 0.05) -> T | None:
    """The first answer that is true, asked for again and again; None when `seconds` passed without one."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            return None
        time.sleep(every)
