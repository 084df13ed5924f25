from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from approvals import policies, simulation, standing
from approvals.in_force import in_force
from approvals.models import Policy, Team
from approvals.rules import REVIEWS_MOST, WORKFLOWS, Rules
from approvals.rules_json import load
from runtime_app import access, members
from runtime_app.console import policy_draft, policy_words, tenancy
from runtime_app.console.forms import show_refusal
from runtime_app.console.policy_forms import PolicyForm, RefuseForm, SeenForm
from runtime_app.console.views.door import now, page
from runtime_app.currencies import EXPONENTS
from runtime_app.errors import Conflict, FieldErrors
from runtime_app.models import Tenant

WORKFLOW = WORKFLOWS[0]
_HISTORY = 100  # versions, the newest first


@dataclass(frozen=True, slots=True)
class Held:
    """What is in force: its number, its rules, and the version that says so, if the tenant has made one."""

    number: int
    rules: Rules
    policy: Policy | None


def tenant_of(request: HttpRequest, slug: str, do: str | None = None) -> Tenant:
    tenant = access.tenant(tenancy.person(request), slug, do=do)
    tenancy.show(request, tenant)
    return tenant


def held(tenant: Tenant) -> Held:
    found = in_force([tenant.pk], WORKFLOW)[tenant.pk]
    known = Policy.objects.select_related("proposed_by", "decided_by")
    policy = known.get(pk=found.policy_id) if found.policy_id is not None else None
    return Held(found.number, found.rules(settings.TIMING.approval_deadline), policy)


@page("GET")
def policies_page(request: HttpRequest, slug: str) -> HttpResponse:
    """What is in force, what waits for a second person, and every version there was."""
    return _page(request, tenant_of(request, slug))


def _page(
    request: HttpRequest, tenant: Tenant, *, agree: SeenForm | None = None, refuse: RefuseForm | None = None
) -> HttpResponse:
    versions = policies.of_tenant(tenancy.person(request), tenant, WORKFLOW)
    proposed = next((one for one in versions if one.state == "proposed"), None)
    current, names = held(tenant), members.names(tenant)
    rules = load(proposed.rules) if proposed else None
    seen = {"number": proposed.number} if proposed else None
    context = {
        "held": current, "lines": policy_words.lines(current.rules, names), "proposed": proposed,
        "problems": simulation.impossible(tenant, current.rules, at=now()),
        "risks": simulation.risky(tenant, current.rules),
        "history": versions[:_HISTORY], "manages": _manages(request, tenant), **_alone(request, tenant),
        "agree_form": agree or SeenForm(initial=seen), "refuse_form": refuse or RefuseForm(initial=seen),
        "own": proposed is not None and proposed.proposed_by == request.user,
    }
    if rules is not None:
        context |= {
            "diff": policy_words.diff(current.rules, rules, names),
            "problems_then": simulation.impossible(tenant, rules, at=now()),
            "risks_then": simulation.risky(tenant, rules),
        }
    return render(request, "policies/policies.html", context, status=422 if agree or refuse else 200)


def _manages(request: HttpRequest, tenant: Tenant) -> bool:
    return access.may(tenancy.person(request), tenant.pk, policies.MANAGE)


def _alone(request: HttpRequest, tenant: Tenant) -> dict[str, Any]:
    """Who else could agree to a change."""
    others = [one for one in access.holding(tenant, policies.MANAGE) if one.pk != request.user.pk]
    names = ", ".join(one.shown_name for one in others[:10])
    return {"others": others, "others_names": names, "alone": _manages(request, tenant) and not others}


@page("GET")
def policy_version(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """One version in words."""
    tenant = tenant_of(request, slug)
    policy = policies.one(tenancy.person(request), tenant, id)
    context = {
        "policy": policy, "lines": policy_words.lines(load(policy.rules), members.names(tenant)),
        "manages": _manages(request, tenant),
    }
    return render(request, "policies/version.html", context)


@page("POST")
def policy_agree(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """The second person's word."""
    tenant, form = tenant_of(request, slug), SeenForm(request.POST)
    try:
        _as_seen(tenant, id, form)
        agreed = policies.agree(tenancy.person(request), id)
    except FieldErrors as refused:
        form.errors.clear()
        for sentence in refused.errors.values():
            form.add_error(None, sentence)
        return _page(request, tenant, agree=form)
    except Conflict as lost:
        return _lost(request, tenant, lost)
    messages.success(request, _("Version %(n)s is in force. What is open is asked anew under it.") % {
        "n": agreed.number})
    return redirect("policies", tenant.slug)


@page("POST")
def policy_refuse(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Not this one; from whoever proposed it, it is taken back."""
    tenant, form = tenant_of(request, slug), RefuseForm(request.POST)
    try:
        _as_seen(tenant, id, form)
        refused = policies.refuse(tenancy.person(request), id, why=form.cleaned_data.get("why", ""))
    except FieldErrors as errors:
        show_refusal(form, errors)
        return _page(request, tenant, refuse=form)
    except Conflict as lost:
        return _lost(request, tenant, lost)
    messages.success(request, _("Version %(n)s was taken back.") % {"n": refused.number}
                     if refused.state == "withdrawn" else _("Version %(n)s is refused.") % {"n": refused.number})
    return redirect("policies", tenant.slug)


def _as_seen(tenant: Tenant, id: UUID, form: SeenForm) -> None:
    """The form names the very version that its page showed; a form for another one does nothing."""
    number = form.cleaned_data["number"] if form.is_valid() else 0
    if not Policy.objects.filter(tenant=tenant, pk=id, number=number).exists():
        raise Conflict(_("This form is not about this version; nothing was recorded. Open the page again."))


def _lost(request: HttpRequest, tenant: Tenant, lost: Conflict) -> HttpResponse:
    return render(request, "policies/conflict.html", {"slug": tenant.slug, "text": lost.message}, status=409)


@page("GET", "POST")
def policy_new(request: HttpRequest, slug: str) -> HttpResponse:
    """Write a change, look it over, propose it."""
    tenant = tenant_of(request, slug, do=policies.MANAGE)
    current = held(tenant)
    if request.method != "POST":
        start = current.rules
        if (chosen := request.GET.get("from", "")) and (known := _version(request, tenant, chosen)) is not None:
            start = load(known.rules)
        return _editor(request, tenant, current, _form(tenant, policy_draft.of_rules(start) | {"base": current.number}))
    draft = policy_draft.typed(request.POST)
    if changed := _rows_changed(request, draft):
        return _editor(request, tenant, current, _form(tenant, changed))
    form = _form(tenant, draft, bound=True)
    try:
        return _checked(request, tenant, current, form)
    except FieldErrors as refused:
        form.show(refused)
        return _editor(request, tenant, current, form, status=422)
    except Conflict as lost:
        return _lost(request, tenant, lost)


def _version(request: HttpRequest, tenant: Tenant, id: str) -> Policy | None:
    try:
        return policies.one(tenancy.person(request), tenant, UUID(id))
    except ValueError:
        return None


def _rows_changed(request: HttpRequest, draft: policy_draft.Draft) -> policy_draft.Draft | None:
    """The draft with a row more or a review less, when such a button was pressed."""
    if place := request.POST.get("add"):
        return policy_draft.add(draft, place[:100]) if place[:100] in _places(draft) else draft
    dropped = request.POST.get("drop", "")
    if dropped.isascii() and dropped.isdigit() and len(dropped) < 3:
        return policy_draft.drop_review(draft, int(dropped))
    return None


def _places(draft: policy_draft.Draft) -> set[str]:
    """Where a row may be added: what the form of the draft has, so that no other name gets into it."""
    reviews = [f"reviews.{n}" for n in range(policy_draft.reviews(draft))]
    who = [*(f"{place}.who" for place in reviews), "escalate_to"]
    roles = [f"{place}.roles" for place in who]
    limits = [*policy_draft.LIMITS, *(f"{place}.above" for place in reviews)]
    limits += [
        f"{place}.{n}.up_to" for place in roles
        for n in range(policy_draft.count(draft, place, "name", policy_draft.ROWS_MOST))
    ]
    return {"reviews", *roles, *limits}


def _form(tenant: Tenant, draft: policy_draft.Draft, *, bound: bool = False) -> PolicyForm:
    """The teams of the tenant, and the people who may decide there or are named already, can be chosen."""
    people = {one.username: one.name for one in standing.of_tenant(tenant.pk)}
    chosen = {name for place, names in draft.items() if place.endswith(".people") for name in names}
    people |= {name: shown for name, shown in members.names(tenant).items() if name in chosen and name not in people}
    teams = [(ref, ref) for ref in Team.objects.filter(tenant=tenant).order_by("ref").values_list("ref", flat=True)]
    named = sorted(people.items(), key=lambda one: one[1])
    return PolicyForm(draft, bound=bound, teams=teams, people=named)


def _checked(request: HttpRequest, tenant: Tenant, current: Held, form: PolicyForm) -> HttpResponse:
    """What the draft would do; or, when that was pressed, its proposal. Raises FieldErrors or Conflict."""
    person = tenancy.person(request)
    if not form.is_valid():
        if "base" in form.errors:
            raise Conflict(_("This form is not complete; nothing was recorded. Open the page again."))
        return _editor(request, tenant, current, form, status=422)
    said, base = form.rules(), form.cleaned_data["base"]
    if request.POST.get("do") != "propose":
        rules = policies.check(person, tenant, said)
        return _editor(request, tenant, current, form, looked_at=rules)
    made = policies.propose(person, tenant, WORKFLOW, said, why=form.cleaned_data["why"], seen=base)
    sentence = _("Version %(n)s is proposed. It holds as soon as another administrator agrees to it.")
    messages.success(request, sentence % {"n": made.number})
    return redirect("policies", tenant.slug)


def _editor(
    request: HttpRequest, tenant: Tenant, current: Held, form: PolicyForm, *, status: int = 200,
    looked_at: Rules | None = None,
) -> HttpResponse:
    waiting = Policy.objects.filter(tenant=tenant, workflow=WORKFLOW, state="proposed").first()
    context: dict[str, Any] = {
        "form": form, "fields": form.named(), "blocks": form.blocks(), "waiting": waiting, "held": current,
        "more_reviews": form.reviews < REVIEWS_MOST, "currencies": sorted(EXPONENTS), **_alone(request, tenant),
        "zone": tenant.time_zone, "broken": bool(form.errors),
    }
    if looked_at is not None:
        context |= {
            "diff": policy_words.diff(current.rules, looked_at, members.names(tenant)),
            "risks": simulation.risky(tenant, looked_at), "looked": True,
        }
    return render(request, "policies/editor.html", context, status=status)
