"""The one path by which a person decides, whatever page or channel it came through."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from approvals import places
from approvals.counting import Vote, missing
from approvals.models import VERDICTS, Approval, Decision
from approvals.places import Place, agreed, rules_of
from approvals.requests import CloseApprovals
from approvals.votes import CastVote
from runtime_app import access, rows
from runtime_app.bell import ring_after_commit
from runtime_app.chronicle import Say
from runtime_app.errors import (
    AlreadyDecided,
    BalanceTooSmall,
    Conflict,
    Expired,
    FieldErrors,
    Forbidden,
    PasswordNeeded,
    RuntimeAppError,
    StaleFacts,
)
from runtime_app.ledger.balances import TakeHold
from runtime_app.models import User
from runtime_app.money import Money
from runtime_app.states import Status
from runtime_app.texts import check_nonce, check_text
from runtime_app.transitions import NEVER, NOW, After, Applied, Guard, Refused, Result, Transition, apply_one

_TAKEN_BACK = "This form was used before, and what it said was taken back; open the page again to decide anew."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. `repeated` says that this very form was recorded before and nothing was done now."""

    approval: Approval
    repeated: bool = False


def approvals(person: User) -> QuerySet[Approval]:
    """The approvals the person may see."""
    return access.scoped(person, Approval.objects.select_related("task", "tenant", "task__requester"), "see_approvals")


def approval(person: User, id: object, *, do: str | None = None) -> Approval:
    queryset = Approval.objects.select_related("task", "tenant", "task__requester")
    return access.one(person, queryset, id, see="see_approvals", do=do)


def why_not(person: User, asked: Approval) -> str | None:
    """Why this person cannot decide this approval, as a sentence; None when the person can."""
    found = places.place(person, asked)
    return found if isinstance(found, str) else None


def decide(
    person: User, approval_id: UUID | str, *, verdict: str, reason: str, fingerprint: str, revision: int, nonce: str,
    password_at: datetime | None = None, bulk: UUID | None = None,
) -> Outcome:
    """Record the person's decision, or raise what stands against it; then nothing was recorded. `password_at` is when
    the person last gave the password; `bulk` the selection that it is decided with.

    Raises NotFound, Forbidden, FieldErrors, AlreadyDecided, Expired, StaleFacts, PasswordNeeded, BalanceTooSmall or
    Conflict.
    """
    access.forget(person)
    asked = approval(person, approval_id, do="decide_approvals")
    reason = _checked(verdict, reason)
    check_nonce(nonce)
    if (before := Decision.objects.filter(approval=asked, person=person, nonce=nonce).first()) is not None:
        if before.withdrawn_at is not None:
            raise Conflict(_TAKEN_BACK)
        return Outcome(asked, repeated=True)
    if (problem := places.excluded(person, asked)) is not None:
        raise Forbidden(problem)
    if asked.state != "open":
        raise lost(asked)
    if asked.fingerprint != fingerprint:
        raise StaleFacts
    if asked.task.revision != revision or asked.task.status != Status.WAITING_APPROVAL:
        raise lost(asked)
    basis = _checked_amount(asked, verdict, password_at, bulk)
    while True:
        place = places.place(person, asked)
        if isinstance(place, str):
            asked.refresh_from_db()
            gone = asked.state != "open" or places.has_spoken(person, asked)
            raise lost(asked) if gone else Forbidden(place)
        result = _apply(person, asked, place, verdict, reason, nonce, basis)
        if not (isinstance(result, Refused) and result.refusal.code == "recount"):
            break
    asked.refresh_from_db()
    if isinstance(result, Applied):
        ring_after_commit()
        return Outcome(asked)
    if Decision.objects.filter(approval=asked, person=person, nonce=nonce, withdrawn_at=None).exists():
        return Outcome(asked, repeated=True)  # the same form, posted twice at the same moment
    raise _refused(asked, result)


def _checked(verdict: str, reason: str) -> str:
    if verdict not in VERDICTS:
        raise FieldErrors({"decision": "Choose to approve, to reject or to ask for input."})
    reason = check_text(reason, "reason", most=1000).strip()
    if verdict == "reject" and not reason:
        raise FieldErrors({"reason": "Say why you reject it; the requester reads this."})
    if verdict == "ask_input" and not reason:
        raise FieldErrors({"reason": "Say what you need to know."})
    return reason


def _checked_amount(
    asked: Approval, verdict: str, password_at: datetime | None, bulk: UUID | None
) -> dict[str, Any]:
    """What of the rules depends on the amount, as a part of the decision's basis."""
    rules, amount, currency = rules_of(asked), asked.facts["amount_minor"], asked.facts["currency"]
    basis: dict[str, Any] = {"policy_version": asked.policy_version, "channel": "bulk" if bulk else "form"}
    if bulk is not None:
        if not rules.in_bulk(amount, currency):
            raise Forbidden("The policy has this amount decided by itself, not together with others.")
        basis["bulk"] = str(bulk)
    if verdict == "approve" and rules.asks_password(amount, currency):
        if password_at is None or not is_fresh(password_at):
            raise PasswordNeeded
        basis["password_at"] = password_at.isoformat()
    return basis


def is_fresh(password_at: datetime | None) -> bool:
    """Whether the password was given so lately that an amount that asks for it may be approved."""
    if password_at is None:
        return False
    return bool(0 <= (rows.now() - password_at).total_seconds() < settings.TIMING.password_fresh)


def _apply(
    person: User, asked: Approval, place: Place, verdict: str, reason: str, nonce: str, basis: dict[str, Any]
) -> Result:
    task = asked.task
    mine = Vote(person.pk, place.review, place.for_person.pk if place.for_person else None)
    completes = verdict == "approve" and not missing(rules_of(asked), (*agreed(asked), mine))
    vote = CastVote(
        approval_id=asked.id, person_id=person.pk, verdict=verdict, reason=reason, nonce=nonce,
        fingerprint=asked.fingerprint, completes=completes, review=place.review, for_person=mine.for_person,
        basis={"permission": "decide_approvals", **place.basis, **basis},
    )
    said = {"by": person.username, "approval": str(asked.id), "fingerprint": asked.fingerprint[:12],
            "review": place.review}
    if place.for_person is not None:
        said["for"] = place.for_person.username
    if reason:
        said["reason"] = reason
    transition = {"approve": _approve, "reject": _reject, "ask_input": _ask_input}[verdict](asked, vote, said)
    guard = Guard(task.id, task.revision, Status.WAITING_APPROVAL)
    return apply_one(guard, transition, actor=access.actor(person))


def _approve(asked: Approval, vote: CastVote, said: dict[str, str]) -> Transition:
    if not vote.completes:
        return Transition(events=(Say("approval.granted", said),), parts=(vote,), keep_lease=True, starts=None)
    facts = asked.facts
    held = {"amount_minor": facts["amount_minor"], "currency": facts["currency"], "payment_ref": facts["payment_ref"]}
    return Transition(
        to=Status.READY,
        events=(Say("approval.granted", said), Say("hold.taken", held), Say("task.ready")),
        parts=(
            vote, TakeHold(facts["account"], facts["payment_ref"], facts["amount_minor"]), CloseApprovals("approved"),
        ),
        due=NOW,
    )


def _reject(asked: Approval, vote: CastVote, said: dict[str, str]) -> Transition:
    return Transition(
        to=Status.REJECTED,
        events=(Say("approval.rejected", said), Say("task.rejected", {"by": said["by"]})),
        parts=(vote, CloseApprovals("rejected", vote.reason)),
    )


def _ask_input(asked: Approval, vote: CastVote, said: dict[str, str]) -> Transition:
    state = {**asked.task.state, "waiting_for": {"answer": vote.reason}, "asked_by": vote.person_id}
    return Transition(
        to=Status.WAITING_INPUT,
        events=(Say("approval.input_asked", said), Say("task.waiting_input", {"fields": ["answer"]})),
        parts=(vote, CloseApprovals("input_asked", vote.reason)),
        columns={"state": state},
        due=After(settings.TIMING.input_deadline) if settings.TIMING.input_deadline else NEVER,
    )


def lost(asked: Approval) -> RuntimeAppError:
    """What happened instead, in words that say that nothing was recorded."""
    facts = {"approval_id": str(asked.id), "state": asked.state, "status": asked.task.status}
    if asked.state == "expired":
        return _expired(asked.deadline_at, **facts)
    decided = Decision.objects.filter(approval=asked, withdrawn_at=None).select_related("person").order_by(
        "-decided_at").first()
    if asked.state in {"approved", "rejected", "input_asked"} and decided is not None:
        return AlreadyDecided(**facts, decided_by=decided.person.shown_name, decided_at=decided.decided_at,
                              verdict=decided.verdict)
    if asked.state == "superseded":
        return StaleFacts(**facts)
    return Conflict(**facts)


def _expired(deadline_at: datetime, **facts: Any) -> Expired:
    ended = f"{deadline_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return Expired(
        f"The time to decide ended at {ended}; your decision was not recorded.", **facts, deadline_at=deadline_at
    )


def _refused(asked: Approval, result: Result) -> RuntimeAppError:
    if isinstance(result, Refused):
        code, facts = result.refusal.code, result.refusal.facts
        if code == "balance_too_small":
            left = Money(facts["remaining_minor"], asked.facts["currency"])
            return BalanceTooSmall(
                f"Only {left} remains to be refunded of this payment; your decision was not recorded."
            )
        if code == "expired":
            return _expired(facts["deadline_at"])
        if code == "stale_facts":
            return StaleFacts()
        if code == "form_used":
            return Conflict(_TAKEN_BACK)
        if code == "not_its_turn":
            return Conflict("Others have decided this review meanwhile; your decision was not recorded.")
    asked.task.refresh_from_db()
    return lost(asked)
