from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runtime_app import access
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
