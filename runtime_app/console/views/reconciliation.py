from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runtime_app import access
from runtime_app.console import counts, facts, keyset, regions, story, tenancy, words
from runtime_app.console.views.door import now, page
from runtime_app.errors import Forbidden
from runtime_app.models import Call, Evidence, Operation
from runtime_app.states import UNRESOLVED, OperationState


@page("GET")
def reconciliation(request: HttpRequest) -> HttpResponse:
    """Operations without a proved outcome, oldest first."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    if not access.may(person, tenant.id, "see_reconciliation"):
        raise Forbidden
    open_ones = counts.unresolved(person, tenant)
    listed = keyset.page(_with_last_look(open_ones), request.GET.get("cursor", ""), by="created_at", newest_first=False)
    moment, url = now(), reverse("reconciliation")
    context = {
        "rows": [_row(operation, moment) for operation in listed.rows], "first": listed.first, "first_url": url,
        "older": listed.older and f"{url}?{urlencode({'cursor': listed.older})}", "sums": _sums(open_ones),
    }
    return regions.answer(request, "console/reconciliation.html", "console/reconciliation_rows.html", context)


def _with_last_look(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    last = Call.objects.filter(operation=OuterRef("pk"), ended_at__isnull=False).order_by("-started_at")
    return operations.annotate(
        last_finding=Subquery(last.values("finding")[:1]),
        sends=Count("calls", filter=Q(calls__kind__in=("submit", "resend"))),
    )


def _row(operation: Any, moment: datetime) -> dict[str, Any]:
    return {
        "operation": operation, "attention": operation.task.attention or operation.case_class,
        "cancel_wished": operation.task.cancel_wished_at is not None,
        "age": moment - (operation.first_submit_at or operation.created_at),
        "last_result": _finding(operation.last_finding or "") or _("not asked yet"), "sends": operation.sends,
    }


def _finding(finding: str) -> str:
    return str(story.FINDINGS.get(finding, finding))


def _sums(operations: QuerySet[Operation]) -> list[dict[str, Any]]:
    """What is at stake, by state and currency; sums never mix currencies."""
    found = operations.order_by("state", "currency").values("state", "currency").annotate(minor=Sum("amount_minor"))
    return [
        {"label": words.look(words.OPERATION, s["state"]).word, "minor": int(s["minor"]), "currency": s["currency"]}
        for s in found
    ]


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
