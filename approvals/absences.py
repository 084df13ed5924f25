"""Who is away, and who stands in. A substitute needs the right to decide in the tenant, and gains no other right."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from approvals.models import Absence
from runtime_app import access, rows
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound
from runtime_app.models import Membership, Tenant, User
from runtime_app.points import point
from runtime_app.texts import check_text

LONGEST = timedelta(days=366)


def stood_for(person: User, tenant_id: UUID) -> list[Absence]:
    """The absences in which this person stands in at this moment, the one that began first first."""
    now = rows.now()
    running = Absence.objects.filter(
        tenant_id=tenant_id, substitute=person, starts_at__lte=now, ends_at__gt=now, ended_at=None
    )
    return list(running.select_related("person").order_by("starts_at", "id"))


def own(person: User, tenant: Tenant) -> list[Absence]:
    """The person's absences that have not passed, the next one first."""
    coming = Absence.objects.filter(tenant=tenant, person=person, ends_at__gt=rows.now(), ended_at=None)
    return list(coming.select_related("substitute").order_by("starts_at", "id"))


def to_stand_in(person: User, tenant: Tenant) -> list[Absence]:
    """The absences, running or to come, in which the person stands in, the next one first."""
    coming = Absence.objects.filter(tenant=tenant, substitute=person, ends_at__gt=rows.now(), ended_at=None)
    return list(coming.select_related("person").order_by("starts_at", "id"))


def coming(by: User, tenant: Tenant) -> list[Absence]:
    """Everybody's absences that have not passed, for tenant admins. Raises NotFound or Forbidden."""
    if not access.may(by, tenant.id, "see_tasks"):
        raise NotFound
    if not access.may(by, tenant.id, "manage_tenant"):
        raise Forbidden
    found = Absence.objects.filter(tenant=tenant, ends_at__gt=rows.now(), ended_at=None)
    return list(found.select_related("person", "substitute").order_by("starts_at", "id")[:200])


def enter(
    by: User, tenant: Tenant, *, person: User, substitute: str, starts_at: datetime, ends_at: datetime, note: str = ""
) -> Absence:
    """Have `substitute` stand in for the person. People enter their own, and tenant admins anybody's.

    Raises NotFound, Forbidden, or FieldErrors beside substitute, starts_at, ends_at or note.
    """
    access.forget(by)
    if not access.may(by, tenant.id, "see_tasks"):
        raise NotFound
    if by.pk != person.pk and not access.may(by, tenant.id, "manage_tenant"):
        raise Forbidden("Only a tenant admin enters an absence of somebody else.")
    note, substitute = check_text(note, "note", most=200).strip(), check_text(substitute, "substitute", most=150)
    if by.pk != person.pk and substitute == by.username:
        raise FieldErrors({"substitute": "Nobody takes the place of somebody else by an own word; name another one."})
    with transaction.atomic(durable=True):
        # Everybody's absences of a tenant are entered one after another, so that no two of them close a circle.
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
        errors = _times(starts_at, ends_at)
        if not Membership.objects.filter(tenant=tenant, person=person, person__is_active=True).exists():
            errors["person"] = "Name an active person of this tenant."
        other = _other(tenant, person, substitute, errors)
        if other is not None and not errors:
            _overlaps(tenant, person, other, starts_at, ends_at, errors)
        if errors or other is None:
            raise FieldErrors(errors)
        entered = Absence.objects.create(
            tenant=tenant, person=person, substitute=other, starts_at=starts_at, ends_at=ends_at, note=note,
            entered_by=by,
        )
        point("absence.enter.commit")
    point("absence.enter.committed")
    return entered


def _times(starts_at: datetime, ends_at: datetime) -> dict[str, str]:
    if ends_at <= rows.now():
        return {"ends_at": "This has passed already."}
    if ends_at <= starts_at:
        return {"ends_at": "It must end after it begins."}
    return {"ends_at": "Use a year at most."} if ends_at - starts_at > LONGEST else {}


def _other(tenant: Tenant, person: User, username: str, errors: dict[str, str]) -> User | None:
    if username == person.username:
        errors["substitute"] = "Nobody stands in for themselves."
        return None
    member = Membership.objects.filter(tenant=tenant, person__username=username, person__is_active=True)
    found = member.select_related("person").first()
    if found is None or not access.may(found.person, tenant.id, "decide_approvals"):
        errors["substitute"] = "Name an active person of this tenant who may decide approvals."
        return None
    return found.person


def _overlaps(
    tenant: Tenant, person: User, other: User, starts_at: datetime, ends_at: datetime, errors: dict[str, str]
) -> None:
    meanwhile = Absence.objects.filter(tenant=tenant, ended_at=None, starts_at__lt=ends_at, ends_at__gt=starts_at)
    if meanwhile.filter(person=person).exists():
        errors["starts_at"] = "There is an absence in this time already; end that one first."
    if meanwhile.filter(person=other).exists():
        errors["substitute"] = "This person is away in this time too; a substitute has no substitute."
    if meanwhile.filter(substitute=person).exists():
        errors["starts_at"] = "The absent person stands in for somebody else in this time; a substitute has none."


def end(by: User, absence_id: UUID) -> Absence:
    """End it now, or before it begins. Raises NotFound, Forbidden or Conflict (it has ended)."""
    access.forget(by)
    absence = Absence.objects.select_related("tenant").filter(pk=absence_id).filter(
        Q(person=by) | Q(tenant_id__in=access.tenant_ids(by, "manage_tenant"))
    ).first()
    if absence is None or not access.may(by, absence.tenant_id, "see_tasks"):
        raise NotFound
    ended = Absence.objects.filter(pk=absence.pk, ended_at=None, ends_at__gt=rows.now()).update(ended_at=rows.now())
    if not ended:
        raise Conflict("This absence has ended already.")
    absence.refresh_from_db()
    return absence
