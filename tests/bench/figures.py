"""Figures with their goals: how they are printed and written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `least` or `most` is its goal; without either it is told for information only."""

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None

    @property
    def goal(self) -> str | None:
        if self.least is not None:
            return f">= {self.least:g}"
        return f"<= {self.most:g}" if self.most is not None else None

    @property
    def ok(self) -> bool | None:
        if self.least is not None:
            return self.value >= self.least
        return self.value <= self.most if self.most is not None else None

    def __str__(self) -> str:
        verdict = {True: "ok", False: "MISSED", None: ""}[self.ok]
        return f"{self.name:<22}{self.value:>10.3g}  {self.unit:<18}{self.goal or '':<9}{verdict}".rstrip()


def write(figures: Sequence[Figure], path: Path) -> None:
    """Write them as a list of {name, value, unit, goal, ok}."""
    told = [{"name": f.name, "value": round(f.value, 4), "unit": f.unit, "goal": f.goal, "ok": f.ok} for f in figures]
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
