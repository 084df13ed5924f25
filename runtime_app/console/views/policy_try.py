from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from approvals import policies, simulation
from approvals.models import Policy
from approvals.rules import Rules
from approvals.rules_json import load
from runtime_app import members
from runtime_app.console import local_times, policy_words, tenancy
from runtime_app.console.forms import show_refusal
from runtime_app.console.policy_forms import TryForm
from runtime_app.console.views.door import now, page
from runtime_app.console.views.policies import WORKFLOW, held, tenant_of
from runtime_app.currencies import EXPONENTS
from runtime_app.errors import FieldErrors
from runtime_app.models import Tenant, User
from runtime_app.money import parse_decimal


@page("GET")
def policy_try(request: HttpRequest, slug: str) -> HttpResponse:
    """What would happen to a request: under what is in force and, beside it, under what is proposed."""
    tenant = tenant_of(request, slug)
    versions = policies.of_tenant(tenancy.person(request), tenant, WORKFLOW)
    proposed = next((one for one in versions if one.state == "proposed"), None)
    people = sorted(members.names(tenant).items(), key=lambda one: one[1])
    form = TryForm(request.GET if "amount" in request.GET else None, people=people, zone=tenant.time_zone)
    context: dict[str, Any] = {"form": form, "proposed": proposed, "currencies": sorted(EXPONENTS)}
    if form.is_valid():
        try:
            context["answers"] = _answers(tenant, form, proposed)
            context["asked"] = form.cleaned_data
        except FieldErrors as refused:
            show_refusal(form, refused)
    return render(request, "policies/try.html", context, status=422 if form.errors else 200)


def _answers(tenant: Tenant, form: TryForm, proposed: Policy | None) -> list[dict[str, Any]]:
    said = form.cleaned_data
    currency = said["currency"].strip()
    amount = parse_decimal(said["amount"], currency, "amount")
    at = local_times.read(said["at"], tenant.time_zone, "at") if said["at"] else now()
    asker = User.objects.filter(username=said["requester"]).first() if said["requester"] else None
    excluded = [asker.pk] if asker is not None else []
    current = held(tenant)
    under: list[tuple[int, bool, Rules]] = [(current.number, False, current.rules)]
    if proposed is not None:
        under.append((proposed.number, True, load(proposed.rules)))
    return [
        {"number": number, "proposed": is_proposed, "amount": amount, "currency": currency,
         **_simulated(tenant, rules, amount, currency, at, excluded)}
        for number, is_proposed, rules in under
    ]


def _simulated(
    tenant: Tenant, rules: Rules, amount: int, currency: str, at: datetime, excluded: list[int]
) -> dict[str, Any]:
    try:
        found = simulation.simulate(tenant, rules, amount_minor=amount, currency=currency, at=at, excluded=excluded)
    except ValueError as refused:  # the calendar has no working time then
        raise FieldErrors({"at": str(refused)}) from None
    reviews = [
        {"name": review.name, "quorum": review.quorum, "people": [p.name for p in found.people[review.name]],
         "lacking": found.lacking.get(review.name, 0)}
        for review in found.reviews
    ]
    times = [found.deadline_at, found.remind_at, found.escalate_at]
    deadline, remind, escalate = (_both(tenant, moment) for moment in times)
    names = members.names(tenant)
    return {
        "found": found, "reviews": reviews, "at": _both(tenant, at), "deadline": deadline, "remind": remind,
        "escalate": escalate, "escalate_to": policy_words.who(rules.escalate_to, names),
        "in_order": len(reviews) > 1 and rules.order == "in_order",
    }


def _both(tenant: Tenant, moment: datetime | None) -> dict[str, Any] | None:
    """A moment in the tenant's zone and in UTC."""
    return {"local": local_times.in_zone(moment, tenant.time_zone), "moment": moment} if moment is not None else None
