"""The few numbers the frame and the start page show, counted no further than they are told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals import reach
from approvals.models import Approval, Snooze
from runtime_app import access
from runtime_app.models import Case, Operation, Tenant, User
from runtime_app.models.columns import RuntimeNow
from runtime_app.states import UNRESOLVED

_ENOUGH = 100
_LOOKED_AT = 500  # of the nearest; beyond them a plus says that there may be more


@dataclass(frozen=True, slots=True)
class ToDecide:
    """How many wait for the person, as text (empty for none), and the nearest deadline."""

    shown: str
    nearest: datetime | None


def to_decide(person: User, tenant: Tenant) -> ToDecide:
    """What the person may decide now and nobody has in hand. Read once a request."""
    known: dict[UUID, ToDecide] = vars(person).setdefault("_to_decide", {})
    if tenant.id not in known:
        known[tenant.id] = _to_decide(person, tenant)
    return known[tenant.id]


def _to_decide(person: User, tenant: Tenant) -> ToDecide:
    if not access.may(person, tenant.id, "decide_approvals"):
        return ToDecide("", None)
    put_away = Snooze.objects.filter(approval=OuterRef("pk"), person=person, until__gt=RuntimeNow())
    free = Approval.objects.filter(~Exists(put_away), claimed_by__isnull=True)
    found = reach.find(person, tenant.id, free, size=_ENOUGH - 1, most=_LOOKED_AT)
    number = f"{len(found.ids)}+" if found.behind is not None else str(len(found.ids) or "")
    return ToDecide(number, found.nearest)


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
