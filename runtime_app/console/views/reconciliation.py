from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runtime_app import access
from runtime_app.console import counts, facts, keyset, queue, queue_rows, regions, story, tenancy, words
from runtime_app.console.queue import Wish
from runtime_app.console.stakes import BANDS, MOST, Stake, at_stake
from runtime_app.console.views.door import now, page
from runtime_app.errors import Forbidden
from runtime_app.models import Call, Evidence, Operation, Tenant, User
from runtime_app.states import UNRESOLVED, OperationState


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


def _finding(finding: str) -> str:
    return str(story.FINDINGS.get(finding, finding))


@page("GET")
def operation(request: HttpRequest, id: UUID) -> HttpResponse:
    """One operation with all that was asked and seen of it. Nothing can be done here, and nothing can be sent again."""
    shown = access.operation(tenancy.person(request), id)
    tenancy.show(request, shown.tenant)
    evidence = list(Evidence.objects.filter(operation=shown).order_by("-observed_at", "-id")[:100])
    for each in evidence:
        vars(each)["finding_word"] = _finding(each.finding).capitalize()
        vars(each)["kind_word"] = _KINDS.get(each.kind, each.kind)
        vars(each)["shown_body"] = json.dumps(each.body, indent=2, ensure_ascii=False, sort_keys=True)[:20_000]
    calls = list(Call.objects.filter(operation=shown).order_by("-started_at", "-id")[:200])
    for call in calls:
        vars(call)["word"] = _CALLS.get(call.kind, call.kind)
        vars(call)["outcome_word"] = _OUTCOMES.get(call.outcome or "", _("no answer recorded"))
        vars(call)["finding_word"] = _finding(call.finding)
        vars(call)["took"] = call.ended_at - call.started_at if call.ended_at else None
    tone, conclusion = _conclusion(shown)
    context = {
        "operation": shown, "task": shown.task, "evidence": evidence, "calls": calls, "tone": tone,
        "conclusion": conclusion, "next_check_at": shown.next_check_at if shown.state in UNRESOLVED else None,
        "facts": facts.of_operation(shown),
    }
    return render(request, "console/operation.html", context)


def _conclusion(operation: Operation) -> tuple[str, str]:
    if operation.case_class:
        case = story.CASES.get(operation.case_class, operation.case_class)
        return "doubt", _("A person must look at this: %(case)s") % {"case": case}
    match operation.state:
        case OperationState.SUCCEEDED:
            return "done", _("The provider has confirmed this refund.")
        case OperationState.FAILED:
            return "crossed", _("The provider refused it; no money moved.")
        case OperationState.NOT_EXECUTED:
            return "crossed", _("It is proved that the provider did not do it.")
        case OperationState.RETURNED:
            return "crossed", _("The provider did it, and the money came back afterwards.")
        case OperationState.PENDING:
            return "", _("The provider has accepted it, and the money has not landed yet.")
        case OperationState.UNKNOWN:
            looked = ngettext(
                "%(n)s look showed no such refund.", "%(n)s looks showed no such refund.", operation.absents
            ) % {"n": operation.absents}
            known = _("It is not known whether the money moved.")
            rule = _("That proves nothing before enough complete looks over enough time agree.")
            return "doubt", f"{known} {looked} {rule}" if operation.absents else known
    return "", _("It has been handed over for sending.")


_KINDS = {
    "provider_response": gettext_lazy("the answer to a request"), "provider_query": gettext_lazy("a look-up"),
}
_CALLS = {
    "submit": gettext_lazy("Sent"), "resend": gettext_lazy("Sent again, same key"), "query": gettext_lazy("Asked"),
    "cancel": gettext_lazy("Asked to cancel"),
}
_OUTCOMES = {
    "succeeded": gettext_lazy("done"), "pending": gettext_lazy("accepted, not settled"),
    "declined": gettext_lazy("refused"), "not_sent": gettext_lazy("not sent"), "unknown": gettext_lazy("not known"),
}
