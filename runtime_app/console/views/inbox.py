from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from approvals import absences, decisions, verbs
from approvals.models import Absence, SavedFilter
from runtime_app import access
from runtime_app.console import counts, inbox, regions, tenancy
from runtime_app.console.inbox import Wish
from runtime_app.console.views.door import now, page
from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors, Forbidden
from runtime_app.models import Tenant, User


@page("GET")
def approvals(request: HttpRequest) -> HttpResponse:
    """What waits for a decision, nearest deadline first; or what was decided, newest first."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    if not access.may(person, tenant.id, "see_approvals"):
        raise Forbidden
    asked = Wish.read(request.GET)
    wish = replace(asked, show=asked.show or beginning(person, tenant))
    errors: dict[str, str] = {}
    listed = inbox.listed(person, tenant, wish, request.GET.get("cursor", ""), errors)
    moment = now()
    held = inbox.told(person, tenant, wish, listed.held, moment)
    rows = inbox.told(person, tenant, wish, listed.rows, moment)
    context = {
        "held": held, "rows": rows, "first": listed.first, "shown": wish.show, "wish": asked, "narrows": wish.narrows,
        "first_url": asked.url(), "older": listed.older and asked.url(listed.older), "carried": asked.carried,
        "all_url": Wish(show=asked.show).url(), "stuck": [row for row in (*held, *rows) if row.nobody],
        "chooses": any(row.together for row in rows), "decides": access.may(person, tenant.id, "decide_approvals"),
        "errors": errors, "tabs": _tabs(person, tenant, asked, wish.show), "saved": _saved(person, tenant, asked),
        "query": asked.query(), "currencies": _currencies(asked), "field": _fields(asked, errors),
        **away(person, tenant, moment),
    }
    return regions.answer(request, "approvals/inbox.html", "approvals/inbox_rows.html", context)


def beginning(person: User, tenant: Tenant) -> str:
    """What the inbox begins with: for who decides, what may be decided; for everybody else, what is open."""
    return inbox.DECIDE if access.may(person, tenant.id, "decide_approvals") else inbox.ALL_OPEN


def _tabs(person: User, tenant: Tenant, asked: Wish, current: str) -> list[dict[str, Any]]:
    labels = {
        inbox.DECIDE: _("To decide"), inbox.MINE: _("Mine"), inbox.SNOOZED: _("Snoozed"),
        inbox.DONE: _("Decided by me"), inbox.ALL_OPEN: _("All open"), inbox.CLOSED: _("All decided"),
    }
    shown = {}
    begins = beginning(person, tenant)
    if begins == inbox.DECIDE:
        held = inbox.in_hand(person, decisions.approvals(person).filter(tenant=tenant))
        shown = {inbox.DECIDE: counts.to_decide(person, tenant).shown, inbox.MINE: counts.shown(held)}
    else:
        labels = {show: label for show, label in labels.items() if show not in inbox.OF_DECIDERS}
    return [
        {"url": asked.url(show="" if show == begins else show), "label": label, "current": show == current,
         "count": shown.get(show, "")}
        for show, label in labels.items()
    ]


def _saved(person: User, tenant: Tenant, asked: Wish) -> list[dict[str, Any]]:
    kept = SavedFilter.objects.filter(tenant=tenant, person=person).order_by("name")
    return [{"name": one.name, "url": (w := Wish.kept(one.query)).url(), "current": w == asked} for one in kept]


def _currencies(asked: Wish) -> Sequence[str]:
    return sorted(EXPONENTS) if not asked.currency or asked.currency in EXPONENTS else [asked.currency, *EXPONENTS]


def _fields(asked: Wish, errors: dict[str, str]) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = [
        {"name": "q", "label": _("Order or payment"), "type": "search"},
        {"name": "currency", "label": _("Currency"), "type": "select"},
        {"name": "least", "label": _("From amount"), "mode": "decimal"},
        {"name": "most", "label": _("To amount"), "mode": "decimal"},
        {"name": "requester", "label": _("Asked by")},
        {"name": "before", "label": _("Deadline until"), "type": "date"},
    ]
    for field in fields:
        field |= {"value": getattr(asked, field["name"]), "error": errors.get(field["name"])}
        if field["name"] in errors and field.get("type") == "date":
            field["type"] = "text"  # a date field would not show what is wrong
    return [{"type": "text", **field} for field in fields]


def away(person: User, tenant: Tenant, moment: datetime) -> dict[str, Any]:
    """Whether the person is away now, and for whom the person stands in."""
    running: list[Absence] = [a for a in absences.own(person, tenant) if a.starts_at <= moment]
    return {"absent": running, "stands_in": absences.stood_for(person, tenant.id)}


@page("POST")
def filter_save(request: HttpRequest) -> HttpResponse:
    """Keep the words of the query, never what they match."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    wish = Wish.kept(request.POST.get("query", ""))
    try:
        verbs.save_filter(person, tenant.id, name=request.POST.get("name", ""), query=wish.query())
    except FieldErrors as refused:
        messages.error(request, " ".join(refused.errors.values()))
    else:
        messages.success(request, _("The filter is kept under its name."))
    return redirect(wish.url())


@page("POST")
def filter_drop(request: HttpRequest) -> HttpResponse:
    tenant, person = tenancy.current(request), tenancy.person(request)
    verbs.drop_filter(person, tenant.id, name=request.POST.get("name", ""))
    return redirect(Wish.kept(request.POST.get("query", "")).url())
