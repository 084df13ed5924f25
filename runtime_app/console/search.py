"""Finding a task by any id that a customer, an application or a provider can name: each kind by its own index."""

from __future__ import annotations

from uuid import UUID

from approvals.models import Approval
from runtime_app import access
from runtime_app.models import Operation, Session, Task, Tenant, User

MOST = 100


def find(person: User, tenant: Tenant, text: str) -> list[Task]:
    """The person's tasks of this tenant with this id, newest first, at most MOST."""
    wanted = text.strip()
    if not wanted or len(wanted) > 200 or not wanted.isprintable():
        return []
    of_tenant = Task.objects.filter(tenant=tenant)
    ids: set[UUID] = set()
    for tasks in (
        of_tenant.filter(order_ref=wanted),
        of_tenant.filter(payment_ref=wanted),
        of_tenant.filter(request_key=wanted),
    ):
        ids |= set(tasks.order_by("-created_at", "-id").values_list("id", flat=True)[:MOST])
    operations = Operation.objects.filter(tenant=tenant)
    ids |= set(operations.filter(provider_ref=wanted).values_list("task_id", flat=True)[:MOST])
    for session in Session.objects.filter(tenant=tenant, ref=wanted):
        ids |= set(session.tasks.order_by("-created_at").values_list("id", flat=True)[:MOST])
    if (id := _uuid(wanted)) is not None:
        ids.add(id)
        ids |= set(operations.filter(id=id).values_list("task_id", flat=True))
        ids |= set(Approval.objects.filter(tenant=tenant, id=id).values_list("task_id", flat=True))
    return list(access.tasks(person).filter(tenant=tenant, id__in=ids).order_by("-created_at", "-id")[:MOST])


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
