"""Asking people, and closing what was asked, as parts of transitions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from approvals.calendars import before, due
from approvals.in_force import InForce
from approvals.intents import ENDED, tell
from approvals.rules import Rules
from approvals.rules_json import dump
from runtime_app import outbox, rows
from runtime_app.ids import new_id
from runtime_app.transitions import Locked, Refusal

_COLUMNS = (
    ("id", "uuid"), ("tenant_id", "uuid"), ("task_id", "uuid"), ("state", "text"), ("fingerprint", "text"),
    ("facts", "jsonb"), ("policy_version", "int"), ("policy_id", "uuid"), ("rules", "jsonb"), ("quorum", "smallint"),
    ("deadline_at", "timestamptz"), ("remind_at", "timestamptz"), ("escalate_at", "timestamptz"),
    ("claimed_by_id", "bigint"), ("claimed_at", "timestamptz"), ("asked_at", "timestamptz"), ("closed_why", "text"),
)


@dataclass(frozen=True, slots=True)
class AskApproval:
    """A question about one exact action, under the rules as they are now and for as long as it is open.

    `deadline_at` is the database's time. `to` is the person whom it comes back to.
    """

    fingerprint: str
    facts: Mapping[str, Any]
    rules: Rules
    policy_version: int
    deadline_at: datetime
    policy_id: UUID | None = None
    to: int | None = None
    id: UUID = field(default_factory=new_id)

    rank: ClassVar[int] = 51
    survives: ClassVar[bool] = False

    @classmethod
    def under(
        cls, held: InForce, rules: Rules, *, fingerprint: str, facts: Mapping[str, Any], now: datetime, always: bool,
        to: int | None = None,
    ) -> Self:
        """Asked under these rules at `now`: for what they need of this amount, until their term has passed."""
        frozen = rules.frozen_for(facts["amount_minor"], facts["currency"], always=always)
        deadline = due(rules.term, now, held.time_zone, rules.hours)
        return cls(fingerprint, facts, frozen, held.number, deadline, held.policy_id, to)

    @property
    def quorum(self) -> int:
        return sum(review.quorum for review in self.rules.reviews)

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.insert("approvals_approval", _COLUMNS, [p._row(row) for row, p in wanted])
        outbox.put([(row.tenant_id, row.id, tell(p.id, "asked"), row.now) for row, p in wanted])

    def _row(self, row: Locked) -> tuple[Any, ...]:
        return (
            self.id, row.tenant_id, row.id, "open", self.fingerprint, json.dumps(dict(self.facts)), self.policy_version,
            self.policy_id, json.dumps(dump(self.rules)), self.quorum, self.deadline_at,
            self._before(self.rules.remind, row.now), self._before(self.rules.escalate, row.now), self.to,
            row.now if self.to is not None else None, row.now, "",
        )

    def _before(self, hours: float, asked_at: datetime) -> datetime | None:
        return before(self.deadline_at, hours, asked_at) if hours else None


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
        closed = rows.run(
            "UPDATE approvals_approval AS a SET state = w.state, closed_at = w.at, closed_why = w.why"
            " FROM unnest(%s::uuid[], %s::text[], %s::timestamptz[], %s::text[]) AS w(task, state, at, why)"
            " WHERE a.task_id = w.task AND (a.state = 'open' OR (a.state = 'approved' AND w.state = 'superseded'))"
            " RETURNING a.tenant_id, a.task_id, a.id, a.state, a.closed_at",
            [[row.id for row, _ in wanted], [p.state for _, p in wanted], [row.now for row, _ in wanted],
             [p.why[:300] for _, p in wanted]],
        )
        outbox.put([(tenant, task, tell(id, ENDED[state]), at) for tenant, task, id, state, at in closed])
