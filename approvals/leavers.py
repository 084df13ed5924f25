"""Whoever may decide no more has nothing in hand any more: what such a person had taken is given back by the system.

Votes are not touched here. They are counted again before anything is sent, with what people hold at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from approvals import standing
from approvals.notes import AddNote
from runtime_app import rows
from runtime_app.chronicle import Say
from runtime_app.states import Status
from runtime_app.transitions import Applied, Guard, Transition, Wanted, apply

_AT_ONCE = 50
WHY = "The person in whose hand it was may not decide here any more."


def is_anything_due() -> bool:
    return bool(_gone())


def work(_ports: object, *, actor: str, limit: int) -> int:
    """Give back a batch of what people have in hand who may decide no more; returns how many were given back."""
    for tenant, person in _gone():
        done = apply([_given_back(*held, person, actor) for held in _held_by(tenant, person)])
        if given := sum(isinstance(one, Applied) for one in done):
            return given
    return 0


def _gone() -> list[tuple[UUID, int]]:
    """Tenants and people who have something in hand there without the right to decide it."""
    holders = rows.run(
        "SELECT DISTINCT tenant_id, claimed_by_id FROM approvals_approval WHERE state = 'open'"
        " AND claimed_by_id IS NOT NULL"
    )
    held = standing.of_people({row[0] for row in holders}, {row[1] for row in holders})
    return sorted((row[0], row[1]) for row in holders if (row[0], row[1]) not in held)


def _held_by(tenant: UUID, person: int) -> Sequence[tuple[UUID, int, UUID, str]]:
    found = rows.run(
        "SELECT t.id, t.revision, a.id, u.username FROM approvals_approval a"
        " JOIN runtime_app_task t ON t.id = a.task_id JOIN runtime_app_user u ON u.id = a.claimed_by_id"
        " WHERE a.state = 'open' AND a.tenant_id = %s"
        " AND a.claimed_by_id = %s AND t.status = 'waiting_approval' ORDER BY a.deadline_at, a.id LIMIT %s",
        [tenant, person, _AT_ONCE],
    )
    return [(row[0], row[1], row[2], row[3]) for row in found]


def _given_back(task_id: UUID, revision: int, approval: UUID, username: str, person: int, actor: str) -> Wanted:
    said = {"approval": str(approval), "from": username, "why": WHY}
    transition = Transition(
        events=(Say("approval.released", said),), keep_lease=True, starts=None,
        parts=(AddNote(approval, "released", None, WHY, other_id=person),),
    )
    return Wanted(Guard(task_id, revision, Status.WAITING_APPROVAL), transition, actor)
