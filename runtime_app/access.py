"""The only way a door gets a row: asking for a row asks for the permission.

Rights are guardian grants on the tenant, to a person or to a person's groups, read fresh; nothing model-wide and no
superuser shortcut opens a row, and an inactive person holds nothing. Unknown and foreign rows give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from runtime_app import rows
from runtime_app.errors import Forbidden, NotFound
from runtime_app.models import Operation, ServiceAccount, Task, Tenant, User
from runtime_app.roles import SERVICE_RIGHTS

Principal = User | ServiceAccount
Row = TypeVar("Row", bound=Model)

_HOLDERS = """
SELECT u.id, g.content_object_id, p.codename FROM runtime_app_user u
JOIN runtime_app_user_groups ug ON ug.user_id = u.id
JOIN runtime_app_tenantgroupgrant g ON g.group_id = ug.group_id
JOIN auth_permission p ON p.id = g.permission_id
WHERE u.is_active AND u.id = ANY(%s)
UNION
SELECT u.id, g.content_object_id, p.codename FROM runtime_app_user u
JOIN runtime_app_tenantusergrant g ON g.user_id = u.id
JOIN auth_permission p ON p.id = g.permission_id
WHERE u.is_active AND u.id = ANY(%s)
"""


def rights_of(people: Iterable[int]) -> set[tuple[int, UUID, str]]:
    """Every (person id, tenant id, permission) these people hold at this moment."""
    ids = list(people)
    return {(r[0], r[1], r[2]) for r in rows.run(_HOLDERS, [ids, ids])} if ids else set()


def holding(tenant: Tenant, permission: str) -> list[User]:
    """The active people of the tenant who hold this right there, by username."""
    people = {person.pk: person for person in User.objects.filter(memberships__tenant=tenant, is_active=True)}
    held = {one for one, where, right in rights_of(people) if where == tenant.pk and right == permission}
    return sorted((person for pk, person in people.items() if pk in held), key=lambda one: one.username)


def tenant_ids(principal: Principal, permission: str) -> set[UUID]:
    """The tenants in which the principal holds the permission."""
    if isinstance(principal, ServiceAccount):
        return {principal.tenant_id} if permission in SERVICE_RIGHTS else set()
    return {tenant for _, tenant, held in _rights(principal) if held == permission}


def forget(person: User) -> None:
    """Read the person's rights anew at the next question (within a request they are read once)."""
    vars(person).pop("_rights_held", None)


def _rights(person: User) -> set[tuple[int, UUID, str]]:
    held: set[tuple[int, UUID, str]] | None = vars(person).get("_rights_held")
    if held is None:
        held = rights_of([person.pk]) if person.pk is not None else set()
        vars(person)["_rights_held"] = held
    return held


def may(principal: Principal, tenant_id: UUID, permission: str) -> bool:
    return tenant_id in tenant_ids(principal, permission)


def tenants(principal: Principal) -> QuerySet[Tenant]:
    """The tenants whose tasks the principal may see, by name."""
    return Tenant.objects.filter(id__in=tenant_ids(principal, "see_tasks")).order_by("name", "id")


def scoped(principal: Principal, queryset: QuerySet[Row], permission: str) -> QuerySet[Row]:
    """The rows of tenants in which the principal holds the permission."""
    return queryset.filter(tenant_id__in=tenant_ids(principal, permission))


def one(principal: Principal, queryset: QuerySet[Row], id: object, *, see: str, do: str | None = None) -> Row:
    """The row of this id. NotFound when it is not there or not to be seen; Forbidden when only `do` is missing."""
    try:
        row = scoped(principal, queryset, see).filter(pk=UUID(str(id))).first()
    except ValueError:
        row = None
    if row is None:
        raise NotFound
    if do is not None and not may(principal, getattr(row, "tenant_id"), do):  # noqa: B009 - every scoped row has one
        raise Forbidden
    return row


def tasks(principal: Principal) -> QuerySet[Task]:
    return scoped(principal, Task.objects.select_related("tenant", "requester", "service_account"), "see_tasks")


def task(principal: Principal, id: object, *, do: str | None = None) -> Task:
    queryset = Task.objects.select_related("tenant", "requester", "service_account")
    return one(principal, queryset, id, see="see_tasks", do=do)


def tenant(principal: Principal, slug: str, *, do: str | None = None) -> Tenant:
    """A tenant the principal may see, by slug; NotFound and Forbidden as for rows."""
    found = tenants(principal).filter(slug=slug).first()
    if found is None:
        raise NotFound
    if do is not None and not may(principal, found.id, do):
        raise Forbidden
    return found


def operations(principal: Principal) -> QuerySet[Operation]:
    """Operations for the reconciliation pages."""
    return scoped(principal, Operation.objects.select_related("task", "tenant"), "see_reconciliation")


def operation(principal: Principal, id: object, *, do: str | None = None) -> Operation:
    return one(principal, Operation.objects.select_related("task", "tenant"), id, see="see_reconciliation", do=do)


def actor(principal: Principal) -> str:
    """How the principal is written into events: `person:<id>:<username>` or `service:<id>:<name>`."""
    if isinstance(principal, ServiceAccount):
        return f"service:{principal.id}:{principal.name}"
    return f"person:{principal.pk}:{principal.username}"
