"""What the frame around every page shows."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runtime_app import access, members
from runtime_app.console import counts, moments, tenancy
from runtime_app.models import Tenant, User


def console(request: HttpRequest) -> dict[str, Any]:
    frame: dict[str, Any] = {
        "environment": settings.ENVIRONMENT,
        "zone_name": timezone.get_current_timezone_name(),
        "zone_offset": moments.offset(timezone.now()),
        "navigation": [],
    }
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return frame
    person = tenancy.person(request)
    try:
        tenant = tenancy.current(request)
    except tenancy.NoTenant:
        return frame
    roles = [role_word(role) for role in members.roles_of(person, tenant)]
    return frame | {
        "tenant": tenant,
        "tenants": tenancy.tenants_of(request),
        "roles": roles,
        "navigation": _navigation(request, person, tenant),
        "may_request": access.may(person, tenant.id, "request_tasks"),
        "may_see_reconciliation": access.may(person, tenant.id, "see_reconciliation"),
    }


def role_word(role: str) -> str:
    """What a role is called; one that this release does not know is shown as it is."""
    return str(_ROLE_WORDS.get(role, role))


def _navigation(request: HttpRequest, person: User, tenant: Tenant) -> list[dict[str, Any]]:
    """Only what the person may open; the doors themselves check again."""
    items: list[dict[str, Any]] = [{"url": reverse("start"), "icon": "home", "label": _("Start")}]
    if access.may(person, tenant.id, "see_approvals"):
        waiting = counts.to_decide(person, tenant).shown
        items.append({"url": reverse("approvals"), "icon": "inbox", "label": _("Approvals"), "count": waiting})
    items.append({"url": reverse("tasks"), "icon": "list", "label": _("Tasks")})
    if access.may(person, tenant.id, "request_tasks"):
        items.append({"url": reverse("task_new"), "icon": "plus", "label": _("Ask for a refund")})
    if access.may(person, tenant.id, "see_reconciliation"):
        waiting = counts.shown(counts.waiting(counts.cases(person, tenant)))
        label = _("Reconciliation")
        items.append({"url": reverse("reconciliation"), "icon": "scales", "label": label, "count": waiting})
    items.append({"url": reverse("mine"), "icon": "person", "label": _("Mine")})
    manages = access.may(person, tenant.id, "manage_tenant")
    if manages or access.may(person, tenant.id, "read_audit"):
        items.append({"url": reverse("policies", args=[tenant.slug]), "icon": "shield", "label": _("Approval policy")})
    if manages:
        items.append({"url": reverse("teams", args=[tenant.slug]), "icon": "people", "label": _("Teams")})
        items.append({"url": reverse("absences", args=[tenant.slug]), "icon": "calendar", "label": _("Absences")})
        url = reverse("accounts", args=[tenant.slug])
        items.append({"url": url, "icon": "key", "label": _("Accounts")})
        items.append({"url": reverse("webhooks", args=[tenant.slug]), "icon": "flag", "label": _("Webhooks")})
    start, fits = items[0]["url"], [item["url"] for item in items if request.path.startswith(item["url"])]
    nearest = max(fits, key=len, default="")
    for item in items:
        item["current"] = item["url"] == nearest and (nearest != start or request.path == start)
    return items


_ROLE_WORDS = {
    "requester": gettext_lazy("requester"),
    "approver": gettext_lazy("approver"),
    "support": gettext_lazy("support"),
    "operator": gettext_lazy("operator"),
    "tenant_admin": gettext_lazy("administrator"),
    "auditor": gettext_lazy("auditor"),
}
