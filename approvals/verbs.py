"""What people may do about an open approval besides deciding it. Each reads the person's rights anew.

Raises NotFound, Forbidden, FieldErrors or Conflict; then nothing was recorded. Nothing here moves the task's revision,
voids what was said by others, or stops anybody from deciding.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from approvals import decisions, places
from approvals.models import OPEN, Approval, SavedFilter, Snooze
from approvals.notes import AddNote
from approvals.votes import WithdrawVote
from runtime_app import access, rows
from runtime_app.chronicle import Say
from runtime_app.errors import Conflict, Expired, FieldErrors, Forbidden
from runtime_app.models import Membership, User
from runtime_app.states import Status
from runtime_app.texts import check_text
from runtime_app.transitions import Applied, Guard, Part, Refused, Transition, apply_one

SNOOZE_MOST = timedelta(days=30)
FILTERS_MOST = 30


def claim(person: User, approval_id: UUID) -> Approval:
    """The person has taken it in hand; others see that, and may still decide."""
    asked = _open(person, approval_id)
    _may_decide(person, asked)
    return _do(person, asked, AddNote(asked.id, "claimed", person.pk, holder=person.pk), "approval.claimed", {})


def release(person: User, approval_id: UUID) -> Approval:
    """Out of the person's hand again."""
    asked = _open(person, approval_id)
    if asked.claimed_by_id != person.pk:
        raise Conflict("You do not have this in hand.")
    return _do(person, asked, AddNote(asked.id, "released", person.pk), "approval.released", {})


def hand_over(person: User, approval_id: UUID, *, to: str, text: str = "") -> Approval:
    """Into the hand of somebody else who may decide it."""
    asked = _open(person, approval_id)
    _may_decide(person, asked)
    text, to = check_text(text, "text", most=1000).strip(), check_text(to, "to", most=150)
    other = _other(asked, person, to)
    note = AddNote(asked.id, "handed_over", person.pk, text, other.pk, holder=other.pk)
    return _do(person, asked, note, "approval.handed_over", {"to": other.username} | ({"text": text} if text else {}))


def _other(asked: Approval, person: User, username: str) -> User:
    member = Membership.objects.filter(tenant=asked.tenant_id, person__username=username).select_related("person")
    found = next(iter(member), None)
    if found is None or found.person == person or isinstance(places.place(found.person, asked), str):
        raise FieldErrors({"to": "Name somebody else who may decide this now."})
    return found.person


def comment(person: User, approval_id: UUID, *, text: str) -> Approval:
    """A word to everybody who sees it. It voids nothing."""
    asked = _open(person, approval_id, do="see_approvals")
    written = check_text(text, "text", most=2000).strip()
    if not written:
        raise FieldErrors({"text": "Write something."})
    return _do(person, asked, AddNote(asked.id, "comment", person.pk, written), "approval.commented", {"text": written})


def withdraw_vote(person: User, approval_id: UUID) -> Approval:
    """Take back one's own agreement, while others still have to agree."""
    asked = _open(person, approval_id)
    note = AddNote(asked.id, "vote_withdrawn", person.pk)
    return _do(person, asked, note, "approval.vote_withdrawn", {}, WithdrawVote(asked.id, person.pk))


def snooze(person: User, approval_id: UUID, *, until: datetime | None) -> None:
    """Out of the person's own inbox until then; None brings it back. Its deadline stays what it is."""
    asked = _open(person, approval_id, do="see_approvals")
    if until is None:
        Snooze.objects.filter(approval=asked, person=person).delete()
        return
    now = rows.now()
    if not now < until <= now + SNOOZE_MOST:
        raise FieldErrors({"until": f"Use a time from now on, at most {SNOOZE_MOST.days} days ahead."})
    if until >= asked.deadline_at:
        raise FieldErrors({"until": "By then the time to decide is over; use an earlier time."})
    Snooze.objects.update_or_create(approval=asked, person=person, defaults={"until": until})


def save_filter(person: User, tenant_id: UUID, *, name: str, query: str) -> SavedFilter:
    """Keep a query of the inbox under a name of the person's own; the same name is kept anew."""
    name, query = check_text(name, "name", most=60).strip(), check_text(query, "query", most=500)
    if not access.may(person, tenant_id, "see_approvals"):
        raise Forbidden
    if not name:
        raise FieldErrors({"name": "Give it a name."})
    mine = SavedFilter.objects.filter(tenant_id=tenant_id, person=person)
    if mine.exclude(name=name).count() >= FILTERS_MOST:
        raise FieldErrors({"name": f"You have {FILTERS_MOST} filters; drop one of them first."})
    return SavedFilter.objects.update_or_create(
        tenant_id=tenant_id, person=person, name=name, defaults={"query": query}
    )[0]


def drop_filter(person: User, tenant_id: UUID, *, name: str) -> None:
    if "\0" not in name:  # which no name has, and no question to the database may have
        SavedFilter.objects.filter(tenant_id=tenant_id, person=person, name=name).delete()


def _open(person: User, approval_id: UUID, *, do: str = "decide_approvals") -> Approval:
    access.forget(person)
    asked = decisions.approval(person, approval_id, do=do)
    if asked.state != OPEN:
        raise decisions.lost(asked)
    return asked


def _may_decide(person: User, asked: Approval) -> None:
    if isinstance(why := places.place(person, asked), str):
        raise Forbidden(why)


def _do(
    person: User, asked: Approval, note: AddNote, event: str, said: dict[str, str], *parts: Part
) -> Approval:
    said = {"by": person.username, "approval": str(asked.id), **said}
    transition = Transition(events=(Say(event, said),), parts=(*parts, note), keep_lease=True, starts=None)
    guard = Guard(asked.task_id, asked.task.revision, Status.WAITING_APPROVAL)
    result = apply_one(guard, transition, actor=access.actor(person))
    asked.refresh_from_db()
    if isinstance(result, Applied):
        return asked
    if isinstance(result, Refused) and result.refusal.code == "claimed":
        holder = asked.claimed_by.shown_name if asked.claimed_by else "Somebody else"
        raise Conflict(f"{holder} has taken this in hand; nothing was recorded.")
    if isinstance(result, Refused) and result.refusal.code == "expired":
        raise Expired
    if asked.state != OPEN:
        raise decisions.lost(asked)
    raise Conflict("There is nothing of yours to take back here." if parts else None)
