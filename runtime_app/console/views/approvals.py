from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from approvals import decisions
from approvals.models import OPEN, Approval, Decision
from runtime_app import access
from runtime_app.console import facts, keyset, moments, regions, tenancy, timeline, words
from runtime_app.console.facts import Fact
from runtime_app.console.forms import DecisionForm, show_refusal
from runtime_app.console.tags import asked_by, money_words, passed_on_by, printable
from runtime_app.console.views.door import now, page
from runtime_app.errors import AlreadyDecided, Conflict, FieldErrors, Forbidden, RuntimeAppError
from runtime_app.models import User


@page("GET")
def approvals(request: HttpRequest) -> HttpResponse:
    """What waits for a decision, nearest deadline first; or what was decided, newest first."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    if not access.may(person, tenant.id, "see_approvals"):
        raise Forbidden
    shown = "decided" if request.GET.get("show") == "decided" else "open"
    cursor, rows = request.GET.get("cursor", ""), _listed(person).filter(tenant=tenant)
    if shown == "open":
        listed = keyset.page(rows.filter(state=OPEN), cursor, by="deadline_at", newest_first=False)
    else:
        listed = keyset.page(rows.exclude(state=OPEN).filter(closed_at__isnull=False), cursor, by="closed_at")
    moment = now()
    context = {
        "rows": [_row(person, approval, moment) for approval in listed.rows], "first": listed.first, "shown": shown,
        "first_url": _url(shown), "older": listed.older and _url(shown, listed.older),
        "chips": [
            {"url": _url("open"), "label": _("Open"), "current": shown == "open"},
            {"url": _url("decided"), "label": _("Closed"), "current": shown == "decided"},
        ],
    }
    return regions.answer(request, "approvals/inbox.html", "approvals/inbox_rows.html", context)


def _url(shown: str, cursor: str = "") -> str:
    query = ({"show": shown} if shown != "open" else {}) | ({"cursor": cursor} if cursor else {})
    return reverse("approvals") + (f"?{urlencode(query)}" if query else "")


def _listed(person: User) -> QuerySet[Approval]:
    earlier = Approval.objects.filter(task=OuterRef("task"), state="superseded").exclude(pk=OuterRef("pk"))
    return decisions.approvals(person).select_related("task__service_account").annotate(
        votes=Count("decisions", filter=Q(decisions__verdict="approve")),
        changed=Exists(earlier), voted=Exists(Decision.objects.filter(approval=OuterRef("pk"), person=person)),
    )


def _row(person: User, approval: Any, moment: datetime) -> dict[str, Any]:
    return {
        "approval": approval, "task": approval.task, "votes": approval.votes, "changed": approval.changed,
        "yours": approval.task.requester_id == person.pk, "voted": approval.voted, "facts": approval.facts,
        "waited": (approval.closed_at or moment) - approval.asked_at,
    }


@page("GET", "POST")
def approval(request: HttpRequest, id: UUID) -> HttpResponse:
    """The decision page. Reading it decides nothing; a decision is a form that carries what was read."""
    person = tenancy.person(request)
    asked = decisions.approval(person, id)
    tenancy.show(request, asked.tenant)
    form: DecisionForm | None = None
    if request.method == "POST":
        form = DecisionForm(request.POST)
        try:
            return _decide(request, person, asked, form)
        except FieldErrors as refused:
            show_refusal(form, refused)
        except Conflict as lost:
            return _conflict(request, person, asked, lost)
    return _decision_page(request, person, asked, form)


def _decide(request: HttpRequest, person: User, asked: Approval, form: DecisionForm) -> HttpResponse:
    if not form.is_valid() or form.cleaned_data["approval"] != str(asked.id):
        raise FieldErrors({"form": _("This form is not complete; nothing was recorded. Open the page again.")})
    outcome = decisions.decide(
        person, asked.id, verdict=request.POST.get("decision", ""), reason=form.cleaned_data["reason"],
        fingerprint=form.cleaned_data["fingerprint"], revision=form.cleaned_data["revision"],
        nonce=form.cleaned_data["nonce"],
    )
    given = Decision.objects.filter(approval=asked, person=person).first()
    if outcome.repeated and given is not None:
        said = {"what": words.look(words.DECISION, given.verdict).word}
        messages.info(request, _("Already decided by you: %(what)s. It was recorded once.") % said)
    else:
        messages.success(request, _("Your decision is recorded."))
    return redirect("approval", asked.id)


def _decision_page(request: HttpRequest, person: User, asked: Approval, bound: DecisionForm | None) -> HttpResponse:
    task, moment = asked.task, now()
    given = list(asked.decisions.select_related("person").order_by("decided_at", "id"))
    why_not = _why_not(person, asked, given, moment)
    form = None if why_not else bound or DecisionForm(initial={
        "revision": task.revision, "fingerprint": asked.fingerprint, "approval": asked.id,
        "nonce": secrets.token_urlsafe(24),
    })
    others = Approval.objects.filter(task=task).order_by("asked_at", "id")
    earlier = others.filter(asked_at__lt=asked.asked_at).last()
    newer = others.filter(asked_at__gt=asked.asked_at).last()
    through = passed_on_by(task)
    context = {
        "approval": asked, "task": task, "action": asked.facts, "decisions": given, "why_not": why_not, "form": form,
        "heading": _("Refund on order %(ref)s") % {"ref": printable(task.order_ref)},
        "asked_by": printable(asked_by(task)) + (f" {_('through')} {printable(through)}" if through else ""),
        "facts": facts.of_approval(asked), "policy": _policy(asked, given),
        "diff": facts.changes(earlier, asked) if earlier else [],
        "votes": sum(1 for d in given if d.verdict == "approve"),
        "amount_words": money_words(asked.facts.get("amount_minor"), asked.facts.get("currency")),
        "days": timeline.tell(task, timeline.read(task)), "newer": newer,
    }
    response = render(request, "approvals/approval.html", context)
    response.status_code = 422 if bound is not None else 200
    return response


def _why_not(person: User, asked: Approval, given: list[Decision], moment: datetime) -> str:
    """Why there is no form, in words; empty when this person can decide now."""
    mine = next((d for d in given if d.person_id == person.pk), None)
    if mine is not None:
        said = {"what": words.look(words.DECISION, mine.verdict).word, "when": _when(mine.decided_at)}
        return _("You have decided: %(what)s, %(when)s.") % said
    if asked.state == "superseded":
        return _("What was asked here is no longer what would be done, so this approval no longer counts.")
    if asked.state == "expired" or (asked.state == OPEN and moment >= asked.deadline_at):
        ended = {"when": _when(asked.deadline_at)}
        return _("The time to decide ended at %(when)s. It is refused, and no money moves.") % ended
    if asked.state != OPEN:
        closed = {"state": words.look(words.APPROVAL, asked.state).word, "when": _when(asked.closed_at)}
        return _("This is closed: %(state)s, %(when)s.") % closed
    return decisions.why_not(person, asked) or ""


def _when(moment: datetime | None) -> str:
    if moment is None:
        return "—"
    return date_format(timezone.localtime(moment), _("j M Y, H:i:s")) + f" {moments.offset(moment)}"


def _policy(asked: Approval, given: list[Decision]) -> list[Fact]:
    task, tenant = asked.task, asked.tenant
    limit = money_words(tenant.approval_threshold_minor, asked.facts.get("currency"))
    asked_why = _("The amount is over the threshold of %(limit)s") % {"limit": limit}
    if task.state.get("follows"):
        asked_why = _("It makes good an earlier refund, which always needs people")
    who = _("Approvers of %(tenant)s") % {"tenant": tenant.name}
    if task.requester:
        who = _("Approvers of %(tenant)s, but not %(person)s, who asked for it") % {
            "tenant": tenant.name, "person": task.requester.shown_name}
    return [
        Fact(_("Why people are asked"), asked_why),
        Fact(_("Who may decide"), who),
        Fact(_("How many must approve"), asked.quorum),
        Fact(_("Decide before"), _when(asked.deadline_at)),
        Fact(_("Without a decision"), _("it is refused, and no money moves")),
    ]


def _conflict(request: HttpRequest, person: User, asked: Approval, lost: RuntimeAppError) -> HttpResponse:
    """Somebody or something was first: who, when, and that nothing was recorded now."""
    asked.refresh_from_db()
    asked.task.refresh_from_db()
    given = list(asked.decisions.select_related("person").order_by("decided_at", "id"))
    last = given[-1] if given and isinstance(lost, AlreadyDecided) else None
    title, text = _("It changed while you were looking"), lost.message
    if last is not None and last.person_id == person.pk:
        title = _("Already decided by you")
        text = _("You decided this before: %(what)s, %(when)s. That stands; what you sent now was not recorded.") % {
            "what": words.look(words.DECISION, last.verdict).word, "when": _when(last.decided_at)}
    elif last is not None:
        title = _("%(person)s decided this first") % {"person": last.person.shown_name}
        text = _("%(person)s decided while you were reading: %(what)s, %(when)s. Yours was not recorded.") % {
            "person": last.person.shown_name, "what": words.look(words.DECISION, last.verdict).word,
            "when": _when(last.decided_at)}
    elif lost.code == "expired":
        title, ended = _("Too late"), {"when": _when(asked.deadline_at)}
        text = _("The time to decide ended at %(when)s. Your decision was not recorded.") % ended
    context = {"approval": asked, "task": asked.task, "decisions": given, "title": title, "text": text}
    return render(request, "approvals/conflict.html", context, status=409)
