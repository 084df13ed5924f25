from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runtime_app import access, statements
from runtime_app.console import tenancy
from runtime_app.console.views.door import page
from runtime_app.errors import Forbidden


@page("GET")
def days(request: HttpRequest) -> HttpResponse:
    """The tenant's statement days, newest first."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    if not access.may(person, tenant.id, "see_reconciliation"):
        raise Forbidden
    return render(request, "console/days.html", {})


@page("GET")
def day(request: HttpRequest, id: UUID) -> HttpResponse:
    """One day of one account."""
    shown = statements.days.one(tenancy.person(request), id)
    tenancy.show(request, shown.tenant)
    return render(request, "console/day.html", {"day": shown})
