"""What happens to open approvals by itself: under a new policy they are asked anew, and those who left hold none."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from approvals import leavers
from approvals.requests import CloseApprovals
from runtime_app import rows
from runtime_app.chronicle import Say
from runtime_app.states import Status
from runtime_app.transitions import NOW, Guard, Transition, Wanted, apply

_AT_ONCE = 50


def is_anything_due() -> bool:
    return bool(rows.run(
        "SELECT 1 FROM approvals_policy WHERE state = 'in_force' AND asked_anew_at IS NULL LIMIT 1"
    )) or leavers.is_anything_due()


def work(_ports: object, *, actor: str, limit: int) -> int:
    """Ask anew what is open under rules that no longer hold, a batch at a time; returns how many were, 0 when nothing
    is left. (Called as the other rounds are, `limit` of whose things are of another size.)"""
    for policy_id, number in rows.run(
        "SELECT id, number FROM approvals_policy WHERE state = 'in_force' AND asked_anew_at IS NULL ORDER BY decided_at"
    ):
        if found := _others(policy_id):
            apply([_anew(task, revision, number, actor) for task, revision in found])
            return len(found)
        # What is asked after this is asked under the policy; a handler that read the one before is caught at execution.
        rows.run("UPDATE approvals_policy SET asked_anew_at = runtime_now() WHERE id = %s", [policy_id])
    return leavers.work(_ports, actor=actor, limit=limit)


def _others(policy_id: UUID) -> Sequence[tuple[UUID, int]]:
    """Tasks that wait for an approval under other rules, and their revisions."""
    found = rows.run(
        "SELECT t.id, t.revision FROM approvals_policy p JOIN approvals_approval a ON a.tenant_id = p.tenant_id"
        " AND a.state = 'open' AND a.policy_version <> p.number JOIN runtime_app_task t ON t.id = a.task_id"
        " AND t.workflow = p.workflow AND t.status = 'waiting_approval' WHERE p.id = %s ORDER BY a.deadline_at, a.id"
        " LIMIT %s",
        [policy_id, _AT_ONCE],
    )
    return [(row[0], row[1]) for row in found]


def _anew(task_id: UUID, revision: int, number: int, actor: str) -> Wanted:
    why = f"Version {number} of the policy is in force."
    transition = Transition(
        to=Status.QUEUED, due=NOW, parts=(CloseApprovals("superseded", why),),
        events=(Say("approval.superseded", {"why": why, "changed": ["policy_version"]}),
                Say("task.judged_anew", {"why": why})),
    )
    return Wanted(Guard(task_id, revision, Status.WAITING_APPROVAL), transition, actor)
