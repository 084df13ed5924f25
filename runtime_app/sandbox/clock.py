"""The sandbox's own time: real time plus what a test or a person moved it by, and the product's clock beside it."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

PRODUCT_CLOCK = "COUNTERSIGN_CLOCK_DATABASE_URL"


class Clock:
    """Seconds since the epoch as the sandbox sees them; `advanced` is restored from its file at start."""

    def __init__(self, advanced: float = 0.0) -> None:
        self.advanced = advanced

    def now(self) -> float:
        return time.time() + self.advanced

    def iso(self, at: float | None = None) -> str:
        return datetime.fromtimestamp(self.now() if at is None else at, UTC).isoformat()


def move_product_clock(seconds: float) -> tuple[bool, str]:
    """Move the product's clock by the same amount; says whether it moved, and why not in words. Blocks."""
    url = os.environ.get(PRODUCT_CLOCK, "")
    if not url:
        return False, f"{PRODUCT_CLOCK} is not set, so only the sandbox's clock moved."
    import psycopg  # only a trial or a test has a product clock to move; a bare sandbox starts without the driver

    try:
        with psycopg.connect(url, connect_timeout=5, autocommit=True) as connection:
            moved = connection.execute(
                "UPDATE runtime_clock SET advanced = advanced + make_interval(secs => %s)", (seconds,)
            ).rowcount
    except psycopg.Error as error:
        return False, f"The product's clock could not be moved ({type(error).__name__})."
    if not moved:
        return False, "The product's database has no clock row: it is no trial and no test."
    return True, "Both clocks moved."
