"""Reminders and escalation: what an open approval does by itself when its times come, each once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self
from uuid import UUID

from approvals.calendars import NoWorkingTime, next_working
from approvals.intents import tell
from approvals.rules_json import frozen
from runtime_app import outbox, rows
from runtime_app.chronicle import Say
from runtime_app.ids import new_id
from runtime_app.states import Status
from runtime_app.transitions import Applied, Guard, Locked, Refusal, Transition, Wanted, apply

_AT_ONCE = 50
_COMES = "a.state = 'open' AND a.{at} <= (SELECT runtime_now()) AND a.deadline_at > (SELECT runtime_now())"
_REMIND, _ESCALATE = _COMES.format(at="remind_at"), _COMES.format(at="escalate_at")


def _admit(column: str, wanted: Sequence[tuple[Locked, UUID]]) -> dict[UUID, Refusal]:
    """Lock these approvals and refuse, by task, where it is not time any more, since another worker was here first."""
    found = {
        row[0] for row in rows.run(
            f"SELECT id FROM approvals_approval a WHERE id = ANY(%s) AND {_COMES.format(at=column)}"
            " ORDER BY id FOR NO KEY UPDATE",
            [[approval for _, approval in wanted]],
        )
    }
    return {row.id: Refusal("done_already") for row, approval in wanted if approval not in found}


@dataclass(frozen=True, slots=True)
class Remind:
    """Those who may still decide are reminded. Refused as `done_already` when they were."""

    approval_id: UUID

    rank: ClassVar[int] = 11
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return _admit("remind_at", [(row, p.approval_id) for row, p in wanted])

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.run("UPDATE approvals_approval SET remind_at = NULL WHERE id = ANY(%s)",
                 [[p.approval_id for _, p in wanted]])
        outbox.put([(row.tenant_id, row.id, tell(p.approval_id, "reminder"), row.now) for row, p in wanted])


@dataclass(frozen=True, slots=True)
class Escalate:
    """More people may decide from now on. Refused as `done_already` when they may."""

    approval_id: UUID

    rank: ClassVar[int] = 11
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return _admit("escalate_at", [(row, p.approval_id) for row, p in wanted])

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.run(
            "UPDATE approvals_approval AS a SET escalate_at = NULL, escalated_at = w.at"
            " FROM unnest(%s::uuid[], %s::timestamptz[]) AS w(id, at) WHERE a.id = w.id",
            [[p.approval_id for _, p in wanted], [row.now for row, _ in wanted]],
        )
        rows.insert(
            "approvals_note",
            (("id", "uuid"), ("tenant_id", "uuid"), ("approval_id", "uuid"), ("kind", "text"), ("text", "text"),
             ("at", "timestamptz")),
            [(new_id(), row.tenant_id, p.approval_id, "escalated", "", row.now) for row, p in wanted],
        )
        outbox.put([(row.tenant_id, row.id, tell(p.approval_id, "escalated"), row.now) for row, p in wanted])


@dataclass(frozen=True, slots=True)
class _Due:
    approval_id: UUID
    task_id: UUID
    revision: int
    rules: str
    quorum: int
    zone: str
    deadline_at: datetime
    remind_at: datetime | None


def is_anything_due() -> bool:
    return any(rows.run(f"SELECT 1 FROM approvals_approval a WHERE {due} LIMIT 1") for due in (_REMIND, _ESCALATE))


def work(_ports: object, *, actor: str, limit: int) -> int:
    """Escalate and remind where it is time, a batch at a time; returns how many came true or were moved. (Called as
    the other rounds are, `limit` of whose things are of another size.)"""
    done = _apply(_due(_ESCALATE), Escalate, "approval.escalated", actor)
    due = _due(_REMIND)
    later = {one.approval_id: _later(one) for one in due}
    moved = [one for one in due if later[one.approval_id] is not None]
    for one in moved:
        _move(one, later[one.approval_id])
    return done + len(moved) + _apply([d for d in due if d not in moved], Remind, "approval.reminded", actor)


def _due(condition: str) -> list[_Due]:
    found = rows.run(
        "SELECT a.id, t.id, t.revision, a.rules::text, a.quorum, n.time_zone, a.deadline_at, a.remind_at"
        " FROM approvals_approval a JOIN runtime_app_task t ON t.id = a.task_id AND t.status = 'waiting_approval'"
        f" JOIN runtime_app_tenant n ON n.id = a.tenant_id WHERE {condition} ORDER BY a.deadline_at, a.id LIMIT %s",
        [_AT_ONCE],
    )
    return [_Due(*row) for row in found]


def _later(one: _Due) -> datetime | None:
    """When people work next, unless they do now: nobody is reminded at night or on a holiday."""
    now = rows.now()
    try:
        found = next_working(now, one.zone, frozen(json.loads(one.rules), one.quorum).hours)
    except NoWorkingTime:
        return None  # a calendar without working time holds nobody back
    return found if found > now else None


def _move(one: _Due, later: datetime | None) -> None:
    """Behind the deadline there is nothing to be reminded of."""
    rows.run(
        "UPDATE approvals_approval SET remind_at = %s WHERE id = %s AND state = 'open' AND remind_at = %s",
        [later if later is not None and later < one.deadline_at else None, one.approval_id, one.remind_at],
    )


def _apply(
    due: Sequence[_Due], part: Callable[[UUID], Remind | Escalate], event: str, actor: str
) -> int:
    wanted = [
        Wanted(
            Guard(one.task_id, one.revision, Status.WAITING_APPROVAL),
            Transition(
                events=(Say(event, {"approval": str(one.approval_id)}),), parts=(part(one.approval_id),),
                keep_lease=True, starts=None,
            ),
            actor,
        )
        for one in due
    ]
    return sum(isinstance(result, Applied) for result in apply(wanted)) if wanted else 0
