"""Deciding several small approvals together: choose, look at what was frozen, decide, read what came of each."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from approvals import bulk, places
from approvals.models import Bulk, BulkItem
from runtime_app.console import passwords, tenancy
from runtime_app.console.forms import TogetherForm, show_refusal
from runtime_app.console.inbox import Wish
from runtime_app.console.views.door import page
from runtime_app.errors import FieldErrors, PasswordNeeded


@page("POST")
def choose(request: HttpRequest) -> HttpResponse:
    """Freeze what was ticked in the list; nothing is decided yet."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    wish = Wish.kept(request.POST.get("from", ""))
    made = bulk.choose(person, tenant, request.POST.getlist("ids"))
    return redirect(reverse("approvals_together", args=[made.id]) + wish.carried)


@page("GET", "POST")
def together(request: HttpRequest, id: UUID) -> HttpResponse:
    """The selection as it was frozen, with one form for all of it; once decided, what came of each."""
    person = tenancy.person(request)
    made = bulk.of(person, id)
    if request.method != "POST":
        return _page(request, made)
    form = TogetherForm(request.POST)
    try:
        verdict = request.POST.get("decision", "")
        if not form.is_valid():
            raise FieldErrors({})  # they stand beside their fields
        if form.cleaned_data["password"] and verdict == "approve":
            passwords.check(request, form.cleaned_data["password"])
        bulk.decide(person, id, verdict=verdict, reason=form.cleaned_data["reason"],
                    password_at=passwords.given_at(request))
    except FieldErrors as refused:
        show_refusal(form, refused)
    except PasswordNeeded as needed:
        form.add_error("password", needed.message)
    else:
        wish = Wish.kept(request.POST.get("from", ""))
        return redirect(reverse("approvals_together", args=[id]) + wish.carried)
    return _page(request, made, form)


def _page(request: HttpRequest, made: Bulk, bound: TogetherForm | None = None) -> HttpResponse:
    tenancy.show(request, made.tenant)
    items, wish = bulk.items(made), Wish.kept(request.POST.get("from", "") or request.GET.get("from", ""))
    open_still = made.decided_at is None
    form = (bound or TogetherForm()) if open_still else None
    asks = any(_asks_password(item) for item in items) and not passwords.is_fresh(request)
    password = form is not None and (asks or bool(form.is_bound and form.errors.get("password")))
    if form is not None and password:
        form.need_password()
    context = {
        "bulk": made, "items": items, "form": form, "totals": _totals(items), "number": len(items),
        "password": password,
        "decided": sum(item.result == "decided" for item in items),
        "refused": sum(item.result == "refused" for item in items),
        "left": sum(item.result == "chosen" for item in items), "back_url": wish.url(), "query": wish.query(),
    }
    return render(request, "approvals/together.html", context, status=422 if bound is not None else 200)


def _asks_password(item: BulkItem) -> bool:
    facts = item.approval.facts
    return places.rules_of(item.approval).asks_password(facts["amount_minor"], facts["currency"])


def _totals(items: list[BulkItem]) -> list[dict[str, Any]]:
    """What all of it comes to, by currency; amounts of different currencies are never added up."""
    sums, numbers = Counter[str](), Counter[str]()
    for item in items:
        facts = item.approval.facts
        sums[facts["currency"]] += facts["amount_minor"]
        numbers[facts["currency"]] += 1
    return [{"currency": code, "minor": sums[code], "number": numbers[code]} for code in sorted(sums)]
