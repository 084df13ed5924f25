"""Wrong variants of the protocol: each is what a careless change would make of it, and a matrix must notice it."""

from __future__ import annotations

from collections.abc import Callable

MUTANTS: dict[str, Callable[[], None]] = {}
