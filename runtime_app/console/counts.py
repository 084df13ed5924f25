"""The few numbers the frame and the start page show, counted no further than they are told."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from approvals import decisions
from approvals.models import OPEN, Approval
from runtime_app import access
from runtime_app.models import Case, Operation, Tenant, User
from runtime_app.models.columns import RuntimeNow
from runtime_app.states import UNRESOLVED

_ENOUGH = 100


def to_decide(person: User, tenant: Tenant) -> QuerySet[Approval]:
    """Open approvals that this person can still decide, nearest deadline first."""
    if not access.may(person, tenant.id, "decide_approvals"):
        return Approval.objects.none()
    waiting = decisions.approvals(person).filter(tenant=tenant, state=OPEN)
    return waiting.exclude(task__requester=person).exclude(decisions__person=person).order_by("deadline_at", "id")


def unresolved(person: User, tenant: Tenant) -> QuerySet[Operation]:
    """Operations whose outcome is not proved."""
    return access.operations(person).filter(tenant=tenant, state__in=sorted(UNRESOLVED))


def cases(person: User, tenant: Tenant) -> QuerySet[Case]:
    """All cases of the tenant, open and closed."""
    return access.scoped(person, Case.objects.filter(tenant=tenant), "see_reconciliation")


def waiting(cases: QuerySet[Case]) -> QuerySet[Case]:
    """Those that are open and not put off until later."""
    put_off = Q(snoozed_until__isnull=False, snoozed_until__gt=RuntimeNow())
    return cases.filter(Q(state="open") & ~put_off)


def shown(rows: QuerySet[Any]) -> str:
    """The count as text, "99+" when there are more; empty for none."""
    number = rows.order_by()[:_ENOUGH].count()
    return "" if number == 0 else str(number) if number < _ENOUGH else f"{_ENOUGH - 1}+"
