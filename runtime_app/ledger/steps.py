"""Steps: what each unit of work inside an attempt decided, and how long it was active."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.transitions import Locked, Refusal


@dataclass(frozen=True, slots=True)
class AddStep:
    name: str
    outcome: str
    active_ms: float
    fence: int

    rank: ClassVar[int] = 70
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.insert(
            "runtime_app_step",
            (("id", "uuid"), ("tenant_id", "uuid"), ("task_id", "uuid"), ("fence", "bigint"), ("name", "text"),
             ("outcome", "text"), ("active_ms", "float8"), ("ended_at", "timestamptz")),
            [(new_id(), row.tenant_id, row.id, p.fence, p.name, p.outcome, p.active_ms, row.now) for row, p in wanted],
        )
