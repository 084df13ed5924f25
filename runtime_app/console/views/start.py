from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from approvals import stuck
from runtime_app import access
from runtime_app.console import counts, tenancy
from runtime_app.console.views.door import page
from runtime_app.models import Tenant, User
from runtime_app.states import WAITING_FOR_PEOPLE, Status


@page("GET")
def start(request: HttpRequest) -> HttpResponse:
    """Each role's own start: what waits for this person, and what was asked for lately."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    tasks = access.tasks(person).filter(tenant=tenant)
    mine = tasks.filter(requester=person) if access.may(person, tenant.id, "request_tasks") else tasks
    recent = list(mine.order_by("-created_at", "-id")[:8])
    context = {"cards": _cards(person, tenant), "rows": recent, "first": True, **_in_vain(person, tenant)}
    return render(request, "console/start.html", context)


def _in_vain(person: User, tenant: Tenant) -> dict[str, Any]:
    """What administrators must know at once: rules that nobody can meet, and open approvals that lack people."""
    if not access.may(person, tenant.id, "manage_tenant"):
        return {}
    found = stuck.lacking_people(tenant)
    return {"unsatisfiable": stuck.unsatisfiable(tenant), "stuck": found[:5], "stuck_more": len(found) > 5}


def _cards(person: User, tenant: Tenant) -> list[dict[str, Any]]:
    cards: list[dict[str, Any]] = []
    tasks = access.tasks(person).filter(tenant=tenant)
    if access.may(person, tenant.id, "decide_approvals"):
        waits = counts.to_decide(person, tenant)
        cards.append({
            "url": reverse("approvals"), "label": _("Waiting for your decision"),
            "figure": waits.shown or "0", "when": waits.nearest,
            "text": _("The nearest deadline is") if waits.nearest else _("Nothing waits for you."),
            "go": _("Open the approvals"),
        })
    if access.may(person, tenant.id, "request_tasks"):
        waiting = tasks.filter(requester=person, status__in=sorted(WAITING_FOR_PEOPLE))
        cards.append({
            "url": f"{reverse('tasks')}?status={Status.WAITING_APPROVAL}",
            "label": _("Your requests that wait for people"), "figure": counts.shown(waiting) or "0",
            "text": _("You see below how each of them stands."), "go": _("See all that wait"),
        })
    if access.may(person, tenant.id, "supply_input"):
        asking: Any = tasks.filter(status=Status.WAITING_INPUT)
        cards.append({
            "url": f"{reverse('tasks')}?status={Status.WAITING_INPUT}", "label": _("Waiting for input"),
            "figure": counts.shown(asking) or "0", "text": _("Requests that lack something somebody knows."),
            "go": _("Give what is missing"),
        })
    if access.may(person, tenant.id, "see_reconciliation"):
        cases = counts.waiting(counts.cases(person, tenant))
        nearest_case = cases.order_by("deadline_at", "id").first()
        cards.append({
            "url": f"{reverse('reconciliation')}?show=cases", "label": _("Cases for people"),
            "figure": counts.shown(cases) or "0", "when": nearest_case and nearest_case.deadline_at,
            "text": _("The nearest deadline is") if nearest_case else _("No case is open."),
            "go": _("Open the cases"),
        })
        cards.append({
            "url": reverse("reconciliation"), "label": _("Outcome not proved"),
            "figure": counts.shown(counts.unresolved(person, tenant)) or "0",
            "text": _("The provider is asked again and again until it is proved what happened."),
            "go": _("Open reconciliation"),
        })
    cards.append({
        "url": reverse("tasks"), "label": _("Tasks"), "figure": None,
        "text": _("Find any refund by any id that a customer or a provider can name."), "go": _("Search"),
    })
    return cards


@page("POST")
def switch_tenant(request: HttpRequest) -> HttpResponse:
    """Look at another of one's tenants from now on."""
    chosen = access.tenant(tenancy.person(request), request.POST.get("tenant", "")[:40].replace("\x00", ""))
    request.session[tenancy.SESSION_KEY] = chosen.slug
    return redirect(_back(request))


def _back(request: HttpRequest) -> str:
    """The list one came from; a page about one row belongs to its own tenant, so the switch leads to the start."""
    wished = request.POST.get("next", "")
    lists = {reverse(name) for name in ("tasks", "approvals", "reconciliation", "days", "task_new")}
    safe = url_has_allowed_host_and_scheme(wished, allowed_hosts={request.get_host()})
    return wished if safe and wished in lists else reverse("start")
