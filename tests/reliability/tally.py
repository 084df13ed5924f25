"""What the cells of a matrix came to, for the line it prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.reliability.matrix import SEED, Seen


@dataclass
class Tally:
    seen: list[Seen] = field(default_factory=list)

    def add(self, seen: list[Seen]) -> None:
        """Count these cells; fails with what went wrong in any of them."""
        self.seen += seen
        assert not (bad := [s.complaint for s in seen if s.wrong]), "\n".join(bad)

    def print(self, print_line: Callable[[str], None], name: str, **more: object) -> None:
        if not self.seen:
            return
        told: dict[str, object] = {
            "cells": len(self.seen), "bad": sum(bool(s.wrong) for s in self.seen),
            "interrupted": sum(s.reached for s in self.seen), "max_passes": max(s.passes for s in self.seen),
            "sends_again": sum(max(0, s.sends - 1) for s in self.seen), **more, "seed": SEED,
        }
        print_line(" ".join((name, *(f"{what}={many}" for what, many in told.items()))))
