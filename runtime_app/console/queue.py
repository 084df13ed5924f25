"""The reconciliation queue: what a person wishes to see of it, the rows, and what is at stake by kind and age.

It has two parts: operations whose outcome is not proved, and cases that wait for a person.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.urls import reverse

from runtime_app.console import counts
from runtime_app.currencies import EXPONENTS
from runtime_app.models import Case, Operation, Task, Tenant, User
from runtime_app.models.columns import RuntimeNow
from runtime_app.reconciliation.classes import CLASSES
from runtime_app.states import UNRESOLVED, Parked

OUTCOMES, CASES = "outcomes", "cases"
OPERATION_STATES = tuple(sorted(UNRESOLVED))
CASE_STATES = ("open", "snoozed", "closed")
SEVERITIES = ("critical", "high", "normal")
OWNERS = ("mine", "nobody")


@dataclass(frozen=True, slots=True)
class Wish:
    """The queue's address, read: what nobody knows is no filter, so that a kept address never breaks."""

    show: str = OUTCOMES
    state: str = ""
    case: str = ""
    severity: str = ""
    owner: str = ""
    currency: str = ""
    q: str = ""

    @classmethod
    def read(cls, said: QueryDict) -> Wish:
        show = CASES if said.get("show") == CASES else OUTCOMES
        states = CASE_STATES if show == CASES else OPERATION_STATES
        wanted = said.get("q", "").strip()[:200]
        return cls(
            show=show, state=_one_of(said, "state", states), case=_one_of(said, "case", CLASSES),
            severity=_one_of(said, "severity", SEVERITIES), owner=_one_of(said, "owner", OWNERS),
            currency=_one_of(said, "currency", EXPONENTS), q=wanted if wanted.isprintable() else "\ufffd",
        )

    def url(self, cursor: str = "", **other: str) -> str:
        """The address of this wish with these values in place of its own."""
        wish, plain = replace(self, **other), Wish()
        said = {f.name: getattr(wish, f.name) for f in fields(wish) if getattr(wish, f.name) != getattr(plain, f.name)}
        query = urlencode(said | ({"cursor": cursor} if cursor else {}), errors="replace")
        return reverse("reconciliation") + (f"?{query}" if query else "")

    @property
    def narrows(self) -> bool:
        return any((self.case, self.severity, self.owner, self.currency, self.q, self.state))


def _one_of(said: QueryDict, name: str, known: Any) -> str:
    value = said.get(name, "")
    return value if value in known else ""


def outcomes(person: User, tenant: Tenant, wish: Wish) -> QuerySet[Operation]:
    """Operations without a proved outcome."""
    rows = counts.unresolved(person, tenant).defer("request_body")
    if wish.state:
        rows = rows.filter(state=wish.state)
    if wish.currency:
        rows = rows.filter(currency=wish.currency)
    if wish.case or wish.severity or wish.owner == "mine":
        rows = rows.filter(Exists(_narrowed(Case.objects.filter(operation=OuterRef("pk"), state="open"), person, wish)))
    if wish.owner == "nobody":
        owned = Case.objects.filter(operation=OuterRef("pk"), state="open", owner__isnull=False)
        rows = rows.exclude(Exists(owned))
    if wish.q:
        named = Q(order_ref=wish.q) | Q(payment_ref=wish.q) | Q(provider_ref=wish.q) | Q(idempotency_key=wish.q)
        rows = rows.filter(named | Q(pk=id) if (id := _uuid(wish.q)) else named)
    return rows


def cases(person: User, tenant: Tenant, wish: Wish) -> QuerySet[Case]:
    """Cases, by default those that are open and not put off until later."""
    rows = _narrowed(counts.cases(person, tenant), person, wish)
    match wish.state:
        case "closed":
            rows = rows.filter(state="closed")
        case "snoozed":
            rows = rows.filter(state="open", snoozed_until__gt=RuntimeNow())
        case _:
            rows = counts.waiting(rows)
    if wish.owner == "nobody":
        rows = rows.filter(owner__isnull=True)
    if wish.currency:
        rows = rows.filter(currency=wish.currency)
    if wish.q:
        named = (
            Q(order_ref=wish.q) | Q(payment_ref=wish.q) | Q(operation__provider_ref=wish.q)
            | Q(details__refunds__contains=[{"ref": wish.q}])
        )
        rows = rows.filter(named | Q(pk=id) | Q(operation_id=id) if (id := _uuid(wish.q)) else named)
    return rows.select_related("operation__task", "owner").defer("operation__request_body")


def of_task(person: User, task: Task) -> list[Case]:
    """Open cases that the person may see: of the task's own refunds, and those that a parked task waits for."""
    mine = Q(task=task) | Q(operation__task=task)
    if task.parked_reason == Parked.CASE_OPEN:
        mine |= Q(blocks="order", order_ref=task.order_ref)
        if task.payment_ref:
            mine |= Q(blocks__in=("payment", "order"), payment_ref=task.payment_ref)
    found = counts.cases(person, task.tenant).filter(mine, state="open")
    return list(found.order_by("deadline_at", "id").distinct()[:20])


def asks_people(task: Task) -> bool:
    """Whether a case of the task's own refunds is open, whoever may see it."""
    return Case.objects.filter(Q(task=task) | Q(operation__task=task), state="open").exists()


def _narrowed(rows: QuerySet[Case], person: User, wish: Wish) -> QuerySet[Case]:
    if wish.case:
        rows = rows.filter(class_name=wish.case)
    if wish.severity:
        rows = rows.filter(severity=wish.severity)
    if wish.owner == "mine":
        rows = rows.filter(owner=person)
    return rows


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
