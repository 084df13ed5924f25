from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from approvals import absences, preferences, standing
from approvals.calendars import ZONES
from approvals.models import Absence, Decision
from runtime_app import access, members
from runtime_app.console import keyset, local_times, tenancy
from runtime_app.console.forms import show_refusal
from runtime_app.console.team_forms import AbsenceForm, PreferencesForm
from runtime_app.console.views.door import now, page
from runtime_app.console.views.policies import tenant_of
from runtime_app.errors import FieldErrors
from runtime_app.models import Tenant, User
from runtime_app.money import decimal_text

EXPORT_MOST = 10_000  # rows of one file, the newest first
COLUMNS = (
    "decided_at_utc", "order_ref", "payment_ref", "amount", "currency", "verdict", "review", "in_place_of", "reason",
    "taken_back_at_utc", "approval_state", "approval_id", "fingerprint",
)


def _decisions(request: HttpRequest) -> QuerySet[Decision]:
    """The person's own, in the tenant that is looked at, as far as the person may see its approvals now."""
    person = tenancy.person(request)
    own = Decision.objects.filter(person=person, tenant=tenancy.current(request))
    return access.scoped(person, own, "see_approvals").select_related("approval", "approval__task", "for_person")


@page("GET")
def decisions(request: HttpRequest) -> HttpResponse:
    """What the person has decided, the newest first."""
    shown = keyset.page(_decisions(request), request.GET.get("cursor", ""), by="decided_at")
    context = {
        "rows": shown.rows, "older": shown.older and f"?cursor={shown.older}", "first_url": reverse("mine"),
        "first": shown.first, **_tabs(request, "decisions"),
    }
    return render(request, "mine/decisions.html", context)


@page("GET")
def decisions_csv(request: HttpRequest) -> HttpResponse:
    """The same as a file; nothing in it is taken for a formula by a spreadsheet."""
    found = _decisions(request).order_by("-decided_at", "-id")[:EXPORT_MOST]
    response = HttpResponse("".join(_lines(found)), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="decisions-{tenancy.current(request).slug}.csv"'
    return response


def _lines(found: QuerySet[Decision]) -> Iterator[str]:
    yield _csv(COLUMNS)
    for one in found.iterator(chunk_size=500):
        facts = one.approval.facts
        yield _csv((
            one.decided_at.isoformat(), one.approval.task.order_ref, facts["payment_ref"],
            decimal_text(facts["amount_minor"], facts["currency"]), facts["currency"], one.verdict, one.review,
            one.for_person.username if one.for_person else "", one.reason,
            one.withdrawn_at.isoformat() if one.withdrawn_at else "", one.approval.state, str(one.approval_id),
            one.fingerprint,
        ))


def _csv(cells: tuple[str, ...]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow([_plain(cell) for cell in cells])
    return line.getvalue()


def _plain(cell: str) -> str:
    """Text that a spreadsheet would run as a formula begins with an apostrophe instead."""
    return f"'{cell}" if cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r")) or cell[:1] in "\t\r\n" else cell


def _tabs(request: HttpRequest, current: str) -> dict[str, Any]:
    person, tenant = tenancy.person(request), tenancy.current(request)
    return {"tab": current, "decides": access.may(person, tenant.pk, "see_approvals")}


@page("GET", "POST")
def own_absences(request: HttpRequest) -> HttpResponse:
    """The person's absences, and whom the person stands in for."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    zone = local_times.own_zone()
    form = AbsenceForm(request.POST or None, able=_able(tenant, person), zone=zone)
    if request.method == "POST" and _entered(request, tenant, form, person, zone):
        return redirect("mine_absences")
    context = {
        "form": form, "own": absences.own(person, tenant), "standing_in": absences.to_stand_in(person, tenant),
        "now": now(), **_tabs(request, "absences"),
    }
    return render(request, "mine/absences.html", context, status=422 if request.method == "POST" else 200)


@page("GET", "POST")
def all_absences(request: HttpRequest, slug: str) -> HttpResponse:
    """Everybody's absences, which administrators enter and end."""
    tenant = tenant_of(request, slug, do="manage_tenant")
    people = sorted(members.names(tenant).items(), key=lambda one: one[1])
    zone = local_times.own_zone()
    form = AbsenceForm(request.POST or None, able=_able(tenant), zone=zone, people=people)
    if request.method == "POST":
        chosen = User.objects.filter(memberships__tenant=tenant, username=request.POST.get("person", "").replace(
            "\x00", "\ufffd")).first()
        if _entered(request, tenant, form, chosen, zone):
            return redirect("absences", tenant.slug)
    context = {"form": form, "coming": absences.coming(tenancy.person(request), tenant), "now": now()}
    return render(request, "mine/all_absences.html", context, status=422 if request.method == "POST" else 200)


def _able(tenant: Tenant, but: User | None = None) -> list[tuple[str, str]]:
    return [(one.username, one.name) for one in standing.of_tenant(tenant.pk) if but is None or one.person_id != but.pk]


def _entered(request: HttpRequest, tenant: Tenant, form: AbsenceForm, absent: User | None, zone: str) -> bool:
    """Whether the absence was entered; else the form says what stands against it."""
    if not form.is_valid() or absent is None:
        return False
    said, times = form.cleaned_data, {}
    errors: dict[str, str] = {}
    for name in ("starts_at", "ends_at"):
        try:
            times[name] = local_times.read(said[name], zone, name)
        except FieldErrors as refused:
            errors |= refused.errors
    try:
        if errors:
            raise FieldErrors(errors)
        absences.enter(
            tenancy.person(request), tenant, person=absent, substitute=said["substitute"], note=said["note"], **times
        )
    except FieldErrors as refused:
        show_refusal(form, refused)
        return False
    messages.success(request, _("The absence is entered."))
    return True


@page("POST")
def absence_end(request: HttpRequest, id: UUID) -> HttpResponse:
    """End an absence now: one's own, or as an administrator anybody's."""
    person = tenancy.person(request)
    ended: Absence = absences.end(person, id)
    messages.success(request, _("The absence is ended; the substitute does not stand in any more."))
    if ended.person_id == person.pk:
        return redirect("mine_absences")
    return redirect("absences", ended.tenant.slug)


@page("GET", "POST")
def own_preferences(request: HttpRequest) -> HttpResponse:
    """How the person is told, and in which zone the person reads times."""
    person = tenancy.person(request)
    form = PreferencesForm.of(preferences.of(person), person.time_zone)
    if request.method == "POST":
        form = PreferencesForm(request.POST)
        try:
            if form.is_valid():
                preferences.keep(person, **form.cleaned_data)
                messages.success(request, _("Your preferences are kept."))
                return redirect("mine_preferences")
        except FieldErrors as refused:
            show_refusal(form, refused)
    context = {"form": form, "zones": ZONES, **_tabs(request, "preferences")}
    return render(request, "mine/preferences.html", context, status=422 if form.is_bound else 200)
