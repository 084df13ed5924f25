from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from approvals import standing, teams
from approvals.models import Team
from runtime_app import members
from runtime_app.console import tenancy
from runtime_app.console.forms import show_refusal
from runtime_app.console.team_forms import AddForm, TeamForm
from runtime_app.console.views.door import page
from runtime_app.console.views.policies import tenant_of
from runtime_app.errors import Conflict, FieldErrors, NotFound
from runtime_app.models import Tenant


@page("GET", "POST")
def teams_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The tenant's teams; posted, one more of them."""
    tenant = tenant_of(request, slug, do=teams.MANAGE)
    if request.method != "POST":
        return _page(request, tenant, TeamForm())
    form = TeamForm(request.POST)
    try:
        if form.is_valid():
            made = teams.create(tenancy.person(request), tenant, form.cleaned_data["ref"])
            messages.success(request, _("The team %(name)s is there. Add people to it.") % {"name": made.ref})
            return redirect("teams", tenant.slug)
    except FieldErrors as refused:
        show_refusal(form, refused)
    return _page(request, tenant, form)


@page("POST")
def team_add(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    tenant = tenant_of(request, slug, do=teams.MANAGE)
    team = _team(tenant, id)
    form = AddForm(request.POST, team=team, people=list(members.names(tenant).items()))
    try:
        if form.is_valid():
            teams.add(tenancy.person(request), team.pk, form.cleaned_data["username"])
            messages.success(request, _("The team %(name)s has one person more.") % {"name": team.ref})
            return redirect("teams", tenant.slug)
    except FieldErrors as refused:
        show_refusal(form, refused)
    return _page(request, tenant, TeamForm(), added=form)


@page("POST")
def team_remove(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    tenant = tenant_of(request, slug, do=teams.MANAGE)
    team = _team(tenant, id)
    try:
        teams.remove(tenancy.person(request), team.pk, request.POST.get("username", ""))
    except (Conflict, FieldErrors) as lost:
        messages.warning(request, lost.message)
    else:
        messages.success(request, _("The person is no longer in the team %(name)s.") % {"name": team.ref})
    return redirect("teams", tenant.slug)


def _team(tenant: Tenant, id: UUID) -> Team:
    found = Team.objects.filter(tenant=tenant, pk=id).first()
    if found is None:
        raise NotFound
    return found


def _page(request: HttpRequest, tenant: Tenant, form: TeamForm, *, added: AddForm | None = None) -> HttpResponse:
    named, people = teams.named_by(tenant), members.names(tenant)
    able = {one.username for one in standing.of_tenant(tenant.pk)}
    shown = [
        _shown(team, people, able, named, added) for team in teams.of_tenant(tenancy.person(request), tenant)
    ]
    status = 422 if form.is_bound or added is not None else 200
    return render(request, "policies/teams.html", {"teams": shown, "form": form}, status=status)


def _shown(
    team: Team, people: dict[str, str], able: set[str], named: dict[str, list[int]], added: AddForm | None
) -> dict[str, Any]:
    there = sorted((one.person for one in team.members.all()), key=lambda person: person.shown_name)
    inside = {person.username for person in there}
    others = [(name, shown) for name, shown in people.items() if name not in inside]
    bound = added if added is not None and added.team.pk == team.pk else None
    return {
        "row": team, "versions": named.get(team.ref, []), "form": bound or AddForm(team=team, people=others),
        "members": [
            {"person": person, "may": person.username in able} for person in there
        ],
    }
