from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runtime_app import access
from runtime_app.console import tenancy
from runtime_app.console.views.door import page
from runtime_app.models import Case


@page("GET")
def case(request: HttpRequest, id: UUID) -> HttpResponse:
    """One case: what is known on each side, what was seen, what may be done and why the rest may not."""
    rows = Case.objects.select_related("tenant", "operation", "task", "owner")
    shown = access.one(tenancy.person(request), rows, id, see="see_reconciliation")
    tenancy.show(request, shown.tenant)
    return render(request, "console/case.html", {"case": shown})
