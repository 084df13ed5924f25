from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from runtime_app import access, accounts, jobs
from runtime_app.console import (
    conclusion,
    counts,
    facts,
    keyset,
    queue,
    queue_rows,
    regions,
    seen,
    sides,
    tenancy,
    words,
)
from runtime_app.console.queue import Wish
from runtime_app.console.stakes import BANDS, MOST, Stake, at_stake
from runtime_app.console.views.door import now, page
from runtime_app.errors import Forbidden
from runtime_app.models import Balance, Call, Case, Evidence, Operation, Tenant, User
from runtime_app.states import UNRESOLVED


@page("GET")
def reconciliation(request: HttpRequest) -> HttpResponse:
    """Outcomes that are not proved, oldest first, or cases, nearest deadline first."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    if not access.may(person, tenant.id, "see_reconciliation"):
        raise Forbidden
    wish, cursor, moment = Wish.read(request.GET), request.GET.get("cursor", ""), now()
    context = (_cases if wish.show == queue.CASES else _outcomes)(person, tenant, wish, cursor, moment)
    stakes = at_stake(tenant, wish)
    context |= {
        "wish": wish, "tabs": _tabs(person, tenant, wish), "chips": _chips(wish), "stakes": stakes, "bands": BANDS,
        "capped": sum(s.number for s in stakes) >= MOST, "most": MOST, "first_url": wish.url(),
        "all_url": Wish(show=wish.show).url(), "choices": _choices(wish, stakes),
    }
    return regions.answer(request, "console/reconciliation.html", "console/reconciliation_rows.html", context)


def _outcomes(person: User, tenant: Tenant, wish: Wish, cursor: str, moment: datetime) -> dict[str, Any]:
    found = keyset.page(queue.outcomes(person, tenant, wish), cursor, by="created_at", newest_first=False)
    rows = queue_rows.of_outcomes(person, tenant, found.rows, moment)
    return {"rows": rows, "first": found.first, "older": found.older and wish.url(found.older)}


def _cases(person: User, tenant: Tenant, wish: Wish, cursor: str, moment: datetime) -> dict[str, Any]:
    closed = wish.state == "closed"
    by = "closed_at" if closed else "deadline_at"
    found = keyset.page(queue.cases(person, tenant, wish), cursor, by=by, newest_first=closed)
    rows = queue_rows.of_cases(person, tenant, found.rows, moment)
    return {"rows": rows, "first": found.first, "older": found.older and wish.url(found.older)}


def _tabs(person: User, tenant: Tenant, wish: Wish) -> list[dict[str, Any]]:
    """Both parts, each with how many of it match what is searched for."""
    of = {show: Wish(show=show, q=wish.q, currency=wish.currency) for show in (queue.OUTCOMES, queue.CASES)}
    outcomes, cases = of[queue.OUTCOMES], of[queue.CASES]
    return [
        {"url": outcomes.url(), "label": _("Outcomes not proved"), "current": wish.show == queue.OUTCOMES,
         "count": counts.shown(queue.outcomes(person, tenant, outcomes))},
        {"url": cases.url(), "label": _("Cases for people"), "current": wish.show == queue.CASES,
         "count": counts.shown(queue.cases(person, tenant, cases))},
    ]


def _chips(wish: Wish) -> list[dict[str, Any]]:
    """The states of this part, one of which may be chosen."""
    if wish.show == queue.CASES:
        return [
            {"url": wish.url(state="" if state == "open" else state), "label": look.word, "shape": look.shape,
             "current": state == (wish.state or "open")} for state, look in words.CASE_STATE.items()
        ]
    looks = {state: words.look(words.OPERATION, state) for state in queue.OPERATION_STATES}
    return [{"url": wish.url(state=""), "label": _("All"), "current": not wish.state}] + [
        {"url": wish.url(state=state), "label": look.word, "shape": look.shape, "current": state == wish.state}
        for state, look in looks.items()
    ]


def _choices(wish: Wish, stakes: list[Stake]) -> list[dict[str, Any]]:
    """The other filters, as the form offers them."""
    severities = [(value, words.look(words.SEVERITY, value).word) for value in queue.SEVERITIES]
    owners = [("mine", _("mine")), ("nobody", _("nobody"))]
    currencies = sorted({*(s.currency for s in stakes if s.currency), *([wish.currency] if wish.currency else [])})
    return [
        {"name": "case", "label": _("Class"), "chosen": wish.case, "options": list(words.CASE.items())},
        {"name": "severity", "label": _("Severity"), "chosen": wish.severity, "options": severities},
        {"name": "owner", "label": _("Owner"), "chosen": wish.owner, "options": owners},
        {"name": "currency", "label": _("Currency"), "chosen": wish.currency,
         "options": [(code, code) for code in currencies]},
    ]


@page("GET")
def operation(request: HttpRequest, id: UUID) -> HttpResponse:
    """One operation with all that was asked and seen of it. Nothing can be done here, and nothing can be sent again."""
    shown = access.operation(tenancy.person(request), id)
    tenancy.show(request, shown.tenant)
    newest = Evidence.objects.filter(operation=shown).order_by("-observed_at", "-id")[:_EVIDENCE_MOST]
    evidence = list(reversed(newest))
    cases = list(Case.objects.filter(operation=shown).select_related("owner").order_by("-state", "-opened_at"))
    told = next((found for case in cases if case.state == "open" and (found := sides.of_case(case))), ())
    balance = Balance.objects.filter(
        tenant=shown.tenant, account=shown.account, payment_ref=shown.payment_ref).first()
    complete = [e for e in evidence if e.kind == "provider_query" and e.complete]
    tone, sentences = conclusion.of_operation(shown, shown.task, _known(shown, bool(told)))
    context = {
        "operation": shown, "task": shown.task, "cases": cases, "days": seen.told(evidence),
        "calls": seen.calls(Call.objects.filter(operation=shown).order_by("started_at", "id")[:_CALLS_MOST]),
        "sides": sides.compare(shown, None, balance, told or sides.of_operation(shown),
                               absent=bool(complete) and complete[-1].finding in {"absent", "lookalikes"}),
        "tone": tone, "sentences": [*(conclusion.of_refund(r) for r in told[:3]), *sentences],
        "facts": facts.of_operation(shown), "calls_open": True,
        "next_check_at": shown.next_check_at if shown.state in UNRESOLVED else None,
        "window": queue_rows.key_window(shown, queue_rows.key_windows(shown.tenant), now()),
    }
    return render(request, "console/operation.html", context)


_EVIDENCE_MOST, _CALLS_MOST = 200, 200


def _known(operation: Operation, shown: bool) -> conclusion.Known:
    """Until when what was sent can be acted on, and until when it may be repeated."""
    timing, promise = jobs.ports().timing, accounts.promises(operation.tenant_id).get(operation.account)
    in_flight = promise.max_in_flight if promise and promise.max_in_flight is not None else timing.max_in_flight
    horizon = operation.last_possible_send_at and operation.last_possible_send_at + timedelta(seconds=in_flight)
    moment = now()
    window = queue_rows.key_window(operation, queue_rows.key_windows(operation.tenant), moment)
    repeats = promise is not None and promise.replays == "all" and window.left is not None
    return conclusion.Known(moment, horizon, moment + window.left if repeats and window.left else None, shown=shown)
