"""Who is told: read when a delivery is written, and again before it is sent."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F

from approvals import standing
from approvals.models import OPEN, Absence, Approval
from approvals.reach import Reach, seen_of
from approvals.standing import Standing
from runtime_app import access, rows
from runtime_app.models import User

TO_DECIDE = frozenset({"asked", "reminder", "escalated", "handed_over"})  # told to those who decide, while it is open


def deciders(asked: Approval) -> frozenset[int]:
    """Everybody whose word would count now: who may decide and has not spoken, and who stands in for such a person."""
    seen = seen_of([asked.id]).get(asked.id)
    if seen is None:
        return frozenset()
    held = {one.person_id: one for one in standing.of_tenant(asked.tenant_id)}
    away = _stood_for(asked.tenant_id, held)
    return frozenset(id for id, own in held.items() if Reach(id, own, tuple(away.get(id, ()))).decides(seen))


def _stood_for(tenant_id: UUID, held: dict[int, Standing]) -> dict[int, list[Standing]]:
    """By substitute the people who are away at this moment."""
    now = rows.now()
    running = Absence.objects.filter(tenant_id=tenant_id, starts_at__lte=now, ends_at__gt=now, ended_at=None)
    found: dict[int, list[Standing]] = {}
    for substitute, person in running.order_by("starts_at", "id").values_list(F("substitute_id"), F("person_id")):
        if person in held:
            found.setdefault(substitute, []).append(held[person])
    return found


def of(asked: Approval, what: str, to: int | None) -> frozenset[int]:
    """Whom this concerns now, by user id."""
    if what not in TO_DECIDE:
        return frozenset() if asked.task.requester_id is None else frozenset({asked.task.requester_id})
    if not is_open(asked):
        return frozenset()
    return deciders(asked) if what != "handed_over" else deciders(asked) & {to}


def is_open(asked: Approval) -> bool:
    return asked.state == OPEN and rows.now() < asked.deadline_at


def why_not(asked: Approval, what: str, person: User) -> str:
    """Why the person is not told this any more; empty when the person is."""
    access.forget(person)
    if not person.is_active or not person.email:
        return "The person is not active, or has no address."
    if what not in TO_DECIDE:
        return "" if access.may(person, asked.tenant_id, "see_tasks") else "The person may not see it any more."
    if not is_open(asked):
        return "There is nothing to decide any more."
    if what == "handed_over" and asked.claimed_by_id != person.pk:
        return "It is in somebody else's hand."
    return "" if person.pk in deciders(asked) else "The person does not decide it any more."
