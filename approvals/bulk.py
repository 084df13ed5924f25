"""Deciding small approvals together: a selection frozen as it was shown, and each of it decided by the one path."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from approvals import decisions, places
from approvals.models import OPEN, Approval, Bulk, BulkItem
from runtime_app import access, rows
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound, PasswordNeeded, RuntimeAppError
from runtime_app.models import Tenant, User
from runtime_app.points import point
from runtime_app.texts import check_text

MOST = 50
VERDICTS = ("approve", "reject")


def choose(person: User, tenant: Tenant, ids: Sequence[str]) -> Bulk:
    """Freeze a selection of the tenant's approvals as they are now; nothing is decided by it.

    Raises NotFound for an approval that the person may not see, Forbidden, FieldErrors naming `ids`, or Conflict when
    one of them cannot be decided by the person, or not together with others.
    """
    access.forget(person)
    wanted = _ids(ids)
    found = list(decisions.approvals(person).filter(tenant=tenant, id__in=wanted).order_by("deadline_at", "id"))
    if len(found) != len(wanted):
        raise NotFound
    if not access.may(person, tenant.id, "decide_approvals"):
        raise Forbidden
    for asked in found:
        if (problem := _unfit(person, asked)) is not None:
            raise Conflict(f"Order {asked.task.order_ref}: {problem} Nothing was recorded; choose again.")
    with transaction.atomic():
        bulk = Bulk.objects.create(tenant=tenant, person=person)
        BulkItem.objects.bulk_create(
            BulkItem(bulk=bulk, approval=asked, fingerprint=asked.fingerprint, revision=asked.task.revision)
            for asked in found
        )
        point("bulk.choose.commit")
    point("bulk.choose.committed")
    return bulk


def _ids(ids: Sequence[str]) -> set[UUID]:
    if not ids:
        raise FieldErrors({"ids": "Choose at least one."})
    if len(ids) > MOST:
        raise FieldErrors({"ids": f"Choose at most {MOST}; nothing was recorded."})
    try:
        return {UUID(id) for id in ids}
    except ValueError:
        raise NotFound from None


def _unfit(person: User, asked: Approval) -> str | None:
    """Why this one cannot be decided together with others by this person; None when it can."""
    if asked.state != OPEN:
        return "It is not open any more."
    if not places.rules_of(asked).in_bulk(asked.facts["amount_minor"], asked.facts["currency"]):
        return "The policy has this amount decided by itself."
    return decisions.why_not(person, asked)


def of(person: User, bulk_id: UUID) -> Bulk:
    """The person's own selection. Raises NotFound."""
    found = Bulk.objects.filter(pk=bulk_id, person=person).select_related("tenant").first()
    if found is None or not access.may(person, found.tenant_id, "see_approvals"):
        raise NotFound
    return found


def items(bulk: Bulk) -> list[BulkItem]:
    """What was chosen, nearest deadline first."""
    of_bulk = BulkItem.objects.filter(bulk=bulk).select_related("approval__task__requester")
    return list(of_bulk.order_by("approval__deadline_at", "approval_id"))


def decide(
    person: User, bulk_id: UUID, *, verdict: str, reason: str, password_at: datetime | None = None
) -> Bulk:
    """Decide each of the selection as it was shown; what came of each is written to it. A selection is decided once:
    the same again does only what was left undone.

    Raises NotFound, Forbidden, FieldErrors, PasswordNeeded or Conflict (it was decided otherwise).
    """
    access.forget(person)
    bulk = of(person, bulk_id)
    if not access.may(person, bulk.tenant_id, "decide_approvals"):
        raise Forbidden
    reason = _checked(verdict, reason)
    chosen = items(bulk)
    if bulk.decided_at is None and verdict == "approve" and not decisions.is_fresh(password_at) and any(
        places.rules_of(item.approval).asks_password(item.approval.facts["amount_minor"],
                                                     item.approval.facts["currency"]) for item in chosen
    ):
        raise PasswordNeeded
    Bulk.objects.filter(pk=bulk.pk, decided_at=None).update(verdict=verdict, reason=reason, decided_at=rows.now())
    bulk.refresh_from_db()
    if bulk.verdict != verdict:
        raise Conflict("You have decided this selection otherwise already; nothing was recorded now.")
    for item in chosen:
        if item.result == "chosen":
            _decide(person, bulk, item, password_at)
    return bulk


def _checked(verdict: str, reason: str) -> str:
    if verdict not in VERDICTS:
        raise FieldErrors({"decision": "Choose to approve or to reject them."})
    reason = check_text(reason, "reason", most=1000).strip()
    if verdict == "reject" and not reason:
        raise FieldErrors({"reason": "Say why you reject them; the requesters read this."})
    return reason


def _why(refused: RuntimeAppError) -> str:
    first = refused.facts.get("decided_by")
    return f"{first} decided this first; yours was not recorded." if first else refused.message


def _decide(person: User, bulk: Bulk, item: BulkItem, password_at: datetime | None) -> None:
    """The item's own id is the nonce, so that however often this runs it is decided once."""
    try:
        decisions.decide(
            person, item.approval_id, verdict=bulk.verdict, reason=bulk.reason, fingerprint=item.fingerprint,
            revision=item.revision, nonce=item.pk.hex, password_at=password_at, bulk=bulk.pk,
        )
    except RuntimeAppError as refused:
        result, said = "refused", _why(refused)
    else:
        result, said = "decided", ""
    BulkItem.objects.filter(pk=item.pk, result="chosen").update(result=result, said=said[:300])
