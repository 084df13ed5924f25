from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from runtime_app import jobs
from runtime_app.console import bundle, case_facts, case_story, conclusion, seen, sides, tenancy, words
from runtime_app.console.case_forms import ADDRESSES, FORMS, VERBS, CaseForm
from runtime_app.console.forms import show_refusal
from runtime_app.console.tags import printable
from runtime_app.console.views.door import page
from runtime_app.desk import actions, outcomes, reading, verbs
from runtime_app.desk.actions import Offer
from runtime_app.desk.situation import Situation
from runtime_app.errors import Conflict, FieldErrors, Forbidden
from runtime_app.models import Case, Task, User

_SUGGESTIONS_MOST = 10
_SAYS_ITSELF = frozenset({"query_now", "assign", "snooze", "comment"})  # its title and its button are enough
_SHOWN_MOST = 3  # refunds of the provider that are told in words; the table beside has more


@page("GET")
def case(request: HttpRequest, id: UUID) -> HttpResponse:
    """One case: what is known on each side, what was seen, what may be done, and why the rest may not."""
    return _case_page(request, reading.read(tenancy.person(request), id))


@page("POST")
def act(request: HttpRequest, id: UUID, action: str) -> HttpResponse:
    """Do one thing about a case, as the person saw it."""
    person = tenancy.person(request)
    s = reading.read(person, id)
    form = _form(actions.offer(s, person, action), s, request.POST)
    try:
        done = VERBS[action](person, id, **_given(form, s))
    except FieldErrors as refused:
        if not form.errors:
            show_refusal(form, FieldErrors(_named(refused)))
        return _case_page(request, s, form)
    except Conflict as lost:
        return _conflict(request, id, lost)
    if isinstance(done, Task):
        messages.success(request, str(words.ACTS[action].done))
        return redirect("task", done.id)
    messages.success(request, _told(action, done))
    return redirect("case", id)


def _given(form: CaseForm, s: Situation) -> dict[str, Any]:
    """What the verb takes. A form that no longer fits the case is a conflict before it is an incomplete one."""
    if form.is_valid():
        return form.given()
    if any(form[name].errors for name in ("revision", "seen_sha256")):
        form.add_error(None, _("This form is not complete; nothing was recorded. Open the page again."))
    elif form.cleaned_data["revision"] != s.case.revision or form.cleaned_data["seen_sha256"] != s.evidence_sha256:
        raise Conflict
    elif not form.offer.allowed:
        raise Forbidden(form.offer.why) if form.offer.personal else Conflict(form.offer.why)
    raise FieldErrors({})


def _named(refused: FieldErrors) -> dict[str, str]:
    return {"amount" if name == "amount_minor" else name: sentence for name, sentence in refused.errors.items()}


def _told(action: str, done: Case) -> str:
    if action in {"declare_not_executed", "record_as_found"}:
        if done.state == "open":
            return _("Your word is recorded. It takes effect when a second person says the same on the same evidence.")
        return _("Both have said so, and it is done: %(what)s") % {"what": outcomes.WORDS.get(done.outcome, "")}
    if action == "snooze" and done.snoozed_until is None:
        return _("The case is back in the list.")
    return str(words.ACTS[action].done)


def _form(offer: Offer, s: Situation, data: Any = None, people: list[User] | None = None) -> CaseForm:
    named = people if people is not None else reading.workers(s.case.tenant_id) if offer.name == "assign" else []
    return FORMS[offer.name](data, offer=offer, s=s, people=named)


def _case_page(request: HttpRequest, s: Situation, bound: CaseForm | None = None) -> HttpResponse:
    """The whole page; `bound` is the form that was refused, shown again with what stands against it."""
    person, case = tenancy.person(request), s.case
    tenancy.show(request, case.tenant)
    people = reading.workers(case.tenant_id)
    offers = actions.offers(s, person)
    whys = {offer.why for offer in offers if not offer.allowed}
    shown = _shown(s) or (sides.of_operation(s.operation) if s.operation is not None else ())
    absent = s.last_complete is not None and s.last_complete.finding in {"absent", "lookalikes"}
    context: dict[str, Any] = {
        "s": s, "case": case, "operation": s.operation, "task": s.task, "known": _known(s),
        "sides": sides.compare(s.operation, case, s.balance, shown, absent), "days": seen.told(s.evidence),
        "suggestions": _suggestions(s),
        "history": case_story.told(s.entries, {p.username: p.shown_name for p in people}, case.currency),
        "calls": seen.calls(s.calls), "facts": case_facts.of_case(s),
        "acts": [_act(s, offer, people, bound) for offer in offers if offer.allowed or _is(bound, offer)],
        "one_why": next(iter(whys)) if len(whys) == 1 and not any(offer.allowed for offer in offers) else "",
        "refused": [{"title": words.ACTS[o.name].title, "offer": o} for o in offers
                    if not o.allowed and not _is(bound, o)],
    }
    response = render(request, "console/case.html", context)
    response.status_code = 422 if bound is not None else 200
    return response


def _suggestions(s: Situation) -> list[dict[str, Any]]:
    """What it may be, by amount and time; they are for a person to look at, and prove nothing."""
    told: Any = s.case.details.get("suggestions")
    return [one for one in told if isinstance(one, dict)][:_SUGGESTIONS_MOST] if isinstance(told, list) else []


def _shown(s: Situation) -> tuple[sides.Refund, ...]:
    return tuple(sides.Refund(r.ref, r.payment_ref, r.amount_minor, r.currency, r.status) for r in s.shown)


def _is(bound: CaseForm | None, offer: Offer) -> bool:
    return bound is not None and bound.offer.name == offer.name


def _act(s: Situation, offer: Offer, people: list[User], bound: CaseForm | None) -> dict[str, Any]:
    says = words.ACTS[offer.name]
    form = bound if bound is not None and _is(bound, offer) else _form(offer, s, people=people)
    button = str(says.button)
    if offer.second:
        button = _("Declare the same, and do it now")
    return {
        "offer": offer, "says": "" if offer.name in _SAYS_ITSELF else offer.says,
        "title": says.title, "button": button, "form": form, "is_open": form.is_bound,
        "declares": offer.name in {"declare_not_executed", "record_as_found"},
        "url": reverse(f"case_{ADDRESSES[offer.name]}", args=[s.case.id]),
        "fields": form.visible_fields(), "wakes": offer.name == "snooze" and s.snoozed,
    }


def _known(s: Situation) -> dict[str, Any]:
    """The conclusion in words, with its tone."""
    sentences = [conclusion.of_case(s.case.class_name)]
    if not s.open:
        return {"tone": "done", "sentences": [*sentences, outcomes.WORDS.get(s.case.outcome, s.case.outcome)]}
    if closed := s.case.details.get("closed_day"):
        sentences.append(_("It came after the day %(day)s was closed.") % {"day": printable(closed)})
    sentences += [conclusion.of_refund(refund) for refund in _shown(s)[:_SHOWN_MOST]]
    if s.operation is not None and s.task is not None:
        known = conclusion.Known(s.now, s.horizon_at, _key_end(s), shown=bool(s.shown))
        sentences += conclusion.of_operation(s.operation, s.task, known)[1]
    return {"tone": "crossed" if s.case.severity == "critical" else "doubt", "sentences": sentences}


def _key_end(s: Situation) -> datetime | None:
    """The last moment of a repeat; None when the provider does not promise that a repeat counts once."""
    operation, replays = s.operation, s.capabilities is not None and s.capabilities.replays == "all"
    if operation is None or operation.resend_disabled or operation.resends >= jobs.ports().timing.resend_most:
        return None
    return s.key_window_ends_at if replays else None


def _conflict(request: HttpRequest, id: UUID, lost: Conflict) -> HttpResponse:
    """It is not as the person saw it, or not allowed as it is: what changed, and that nothing was recorded."""
    s = reading.read(tenancy.person(request), id)
    tenancy.show(request, s.case.tenant)
    people = {p.username: p.shown_name for p in reading.workers(s.case.tenant_id)}
    context = {"case": s.case, "text": lost.message,
               "history": case_story.told(s.entries[-5:], people, s.case.currency)}
    return render(request, "console/case_conflict.html", context, status=409)


@page("POST")
def evidence(request: HttpRequest, id: UUID) -> HttpResponse:
    """The evidence bundle as a file. Taking it is written into the case's history, with its digest."""
    person = tenancy.person(request)
    s = reading.read(person, id)
    said = bundle.bundle(s)
    verbs.export_noted(person, id, sha256=said["sha256"])
    response = HttpResponse(bundle.text(said), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="evidence-{s.case.id}.json"'
    return response
