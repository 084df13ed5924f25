"""Asking people, and closing what was asked, as parts of transitions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.transitions import Locked, Refusal


@dataclass(frozen=True, slots=True)
class AskApproval:
    """A question about one exact action. The deadline counts from the database's now."""

    fingerprint: str
    facts: Mapping[str, Any]
    policy_version: int
    deadline_in: float
    quorum: int = 1
    id: UUID = field(default_factory=new_id)

    rank: ClassVar[int] = 51
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.insert(
            "approvals_approval",
            (("id", "uuid"), ("tenant_id", "uuid"), ("task_id", "uuid"), ("state", "text"), ("fingerprint", "text"),
             ("facts", "jsonb"), ("policy_version", "int"), ("quorum", "smallint"), ("deadline_at", "timestamptz"),
             ("asked_at", "timestamptz"), ("closed_why", "text")),
            [(p.id, row.tenant_id, row.id, "open", p.fingerprint, json.dumps(dict(p.facts)), p.policy_version, p.quorum,
              row.now + timedelta(seconds=p.deadline_in), row.now, "") for row, p in wanted],
        )


@dataclass(frozen=True, slots=True)
class CloseApprovals:
    """The task's open approval ends in `state`; `superseded` also ends one that was given and no longer counts."""

    state: str
    why: str = ""

    rank: ClassVar[int] = 50
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.run(
            "UPDATE approvals_approval AS a SET state = w.state, closed_at = w.at, closed_why = w.why"
            " FROM unnest(%s::uuid[], %s::text[], %s::timestamptz[], %s::text[]) AS w(task, state, at, why)"
            " WHERE a.task_id = w.task AND (a.state = 'open' OR (a.state = 'approved' AND w.state = 'superseded'))",
            [[row.id for row, _ in wanted], [p.state for _, p in wanted], [row.now for row, _ in wanted],
             [p.why[:300] for _, p in wanted]],
        )
