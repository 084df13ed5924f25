from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from approvals import decisions, places, telling
from approvals.models import OPEN, Approval, Decision, Note, Snooze
from runtime_app.console import facts, inbox, moments, passwords, policy_box, regions, risk, tenancy, timeline, words
from runtime_app.console.approval_forms import CommentForm, HandOverForm, SnoozeForm
from runtime_app.console.forms import DecisionForm, show_refusal
from runtime_app.console.inbox import Wish
from runtime_app.console.policy_box import Box
from runtime_app.console.tags import asked_by, money_words, passed_on_by, printable
from runtime_app.console.views.door import now, page
from runtime_app.errors import AlreadyDecided, Conflict, FieldErrors, PasswordNeeded, RuntimeAppError
from runtime_app.models import User

_EXCERPT = 12  # the last lines of the story


def address(asked: Approval, wish: Wish) -> str:
    """The approval's page, from which the way back leads to this list."""
    return reverse("approval", args=[asked.id]) + wish.carried


@page("GET", "POST")
def approval(request: HttpRequest, id: UUID) -> HttpResponse:
    """The decision page. Reading it decides nothing; a decision is a form that carries what was read."""
    person = tenancy.person(request)
    asked = decisions.approval(person, id)
    if request.method != "POST":
        return decision_page(request, person, asked)
    form = DecisionForm(request.POST)
    try:
        return _decide(request, person, asked, form)
    except FieldErrors as refused:
        show_refusal(form, refused)
    except PasswordNeeded as needed:
        form.add_error("password", needed.message)
    except Conflict as lost:
        return conflict(request, person, asked, lost)
    return decision_page(request, person, asked, form, status=422)


def _decide(request: HttpRequest, person: User, asked: Approval, form: DecisionForm) -> HttpResponse:
    whole = form.is_valid() or not any(form.fields[name].widget.is_hidden for name in form.errors)
    if not whole or form.cleaned_data["approval"] != str(asked.id):
        raise FieldErrors({"form": _("This form is not complete; nothing was recorded. Open the page again.")})
    if form.errors:
        raise FieldErrors({})  # they stand beside their fields
    verdict = request.POST.get("decision", "")
    if form.cleaned_data["password"] and verdict == "approve":
        passwords.check(request, form.cleaned_data["password"])
    outcome = decisions.decide(
        person, asked.id, verdict=verdict, reason=form.cleaned_data["reason"],
        fingerprint=form.cleaned_data["fingerprint"], revision=form.cleaned_data["revision"],
        nonce=form.cleaned_data["nonce"], password_at=passwords.given_at(request),
    )
    given = Decision.objects.filter(approval=asked, person=person, withdrawn_at=None).first()
    if outcome.repeated and given is not None:
        said = {"what": words.look(words.DECISION, given.verdict).word}
        messages.info(request, _("Already decided by you: %(what)s. It was recorded once.") % said)
    else:
        messages.success(request, _("Your decision is recorded."))
    return redirect(address(asked, Wish.kept(request.POST.get("from", ""))))


def decision_page(
    request: HttpRequest, person: User, asked: Approval, bound: DecisionForm | None = None, *, status: int = 200,
    **forms: Any,
) -> HttpResponse:
    """The page; `bound` and `forms` are those that were refused, shown again with what stands against them."""
    tenancy.show(request, asked.tenant)
    task, moment = asked.task, now()
    wish = Wish.kept(request.POST.get("from", "") or request.GET.get("from", ""))
    given = list(asked.decisions.select_related("person", "for_person").order_by("decided_at", "id"))
    box, place = policy_box.of_approval(asked, given), _place(person, asked, given, moment)
    why_not = place if isinstance(place, str) else ""
    form = None if why_not else bound or DecisionForm(initial={
        "revision": task.revision, "fingerprint": asked.fingerprint, "approval": asked.id,
        "nonce": secrets.token_urlsafe(24),
    })
    asks = _asks_password(asked) and not passwords.is_fresh(request)
    password = form is not None and (asks or bool(form.is_bound and form.errors.get("password")))
    if form is not None and password:
        form.need_password()
    others = Approval.objects.filter(task=task).order_by("asked_at", "id")
    earlier = others.filter(asked_at__lt=asked.asked_at).last()
    newer = others.filter(asked_at__gt=asked.asked_at).last()
    through = passed_on_by(task)
    mine = next((d for d in given if d.person_id == person.pk and d.withdrawn_at is None), None)
    following = inbox.following(person, asked.tenant, wish) if why_not else None
    context = {
        "approval": asked, "task": task, "action": asked.facts, "decisions": given, "why_not": why_not, "form": form,
        "heading": _("Refund on order %(ref)s") % {"ref": printable(task.order_ref)},
        "asked_by": printable(asked_by(task)) + (f" {_('through')} {printable(through)}" if through else ""),
        "facts": facts.of_approval(asked), "box": box, "risk": risk.of_approval(asked),
        "diff": facts.changes(earlier, asked) if earlier else [], "place": place,
        "place_text": _in_whose_place(place),
        "password": password,
        "votes": box.agreed, "near": asked.state == OPEN and (asked.deadline_at - moment).total_seconds() < 86400,
        "left": asked.deadline_at - moment, "deliveries": telling.of_approval(asked),
        "amount_words": money_words(asked.facts.get("amount_minor"), asked.facts.get("currency")),
        "days": _excerpt(timeline.tell(task, timeline.read(task))), "newer": newer, "wish": wish,
        "back_url": wish.url(), "carried": wish.carried, "query": wish.query(), "notes": _notes(asked),
        "next_url": following and reverse("approval", args=[following]) + wish.carried,
        "may_withdraw": mine is not None and mine.verdict == "approve" and asked.state == OPEN,
        "seen": _token(asked, given), **_hand(person, asked, box, bool(form), moment), **forms,
    }
    return render(request, "approvals/approval.html", context, status=status)


def _place(person: User, asked: Approval, given: Sequence[Decision], moment: datetime) -> Any:
    """The person's place in it, or in words why there is no form."""
    mine = next((d for d in given if d.person_id == person.pk and d.withdrawn_at is None), None)
    if mine is not None:
        said = {"what": words.look(words.DECISION, mine.verdict).word, "when": when(mine.decided_at)}
        return _("You have decided: %(what)s, %(when)s.") % said
    if asked.state == "superseded":
        return _("What was asked here is no longer what would be done, so this approval no longer counts.")
    if asked.state == "expired" or (asked.state == OPEN and moment >= asked.deadline_at):
        ended = {"when": when(asked.deadline_at)}
        return _("The time to decide ended at %(when)s. It is refused, and no money moves.") % ended
    if asked.state != OPEN:
        closed = {"state": words.look(words.APPROVAL, asked.state).word, "when": when(asked.closed_at)}
        return _("This is closed: %(state)s, %(when)s.") % closed
    return places.place(person, asked)


def _asks_password(asked: Approval) -> bool:
    return places.rules_of(asked).asks_password(asked.facts["amount_minor"], asked.facts["currency"])


def _in_whose_place(place: Any) -> str:
    other = getattr(place, "for_person", None)
    return _("You decide in the place of %(person)s, who is away.") % {"person": other.shown_name} if other else ""


def _hand(person: User, asked: Approval, box: Box, decides: bool, moment: datetime) -> dict[str, Any]:
    """In whose hand it is, and the forms for what else the person may do about it."""
    is_open = asked.state == OPEN and moment < asked.deadline_at
    holder, mine = asked.claimed_by, asked.claimed_by_id == person.pk
    snoozed = Snooze.objects.filter(approval=asked, person=person, until__gt=moment).first() if is_open else None
    over = hand_over_form(person, asked, box=box) if decides and (holder is None or mine) else None
    sleeps = SnoozeForm(now=moment, deadline=asked.deadline_at) if is_open and snoozed is None else None
    return {
        "holder": holder if is_open else None, "held_by_me": mine, "may_claim": decides and holder is None,
        "may_release": is_open and mine, "over_form": over if over is not None and over.people else None,
        "snoozed": snoozed, "snooze_form": sleeps, "comment_form": CommentForm() if is_open else None,
    }


def hand_over_form(person: User, asked: Approval, data: Any = None, *, box: Box | None = None) -> HandOverForm:
    box = box or policy_box.of_approval(asked, list(asked.decisions.select_related("person", "for_person")))
    people = [(one.username, one.name) for one in box.able if one.person_id != person.pk]
    return HandOverForm(data, people=people)


def _notes(asked: Approval) -> list[Note]:
    return list(Note.objects.filter(approval=asked).select_related("person", "other").order_by("at", "id"))


def _excerpt(days: list[timeline.Day]) -> list[timeline.Day]:
    left, kept = _EXCERPT, list[timeline.Day]()
    for day in reversed(days):
        if left <= 0:
            break
        kept.insert(0, timeline.Day(day.at, day.lines[-left:]))
        left -= len(day.lines)
    return kept


def _token(asked: Approval, given: Sequence[Decision]) -> str:
    """What the reader has seen, as far as it moves while a page is open."""
    notes = Note.objects.filter(approval=asked).count()
    return f"{asked.state}.{asked.task.revision}.{sum(d.withdrawn_at is None for d in given)}.{notes}"


@page("GET")
def live(request: HttpRequest, id: UUID) -> HttpResponse:
    """What has changed since the page was read, in a sentence; the page itself stays as it is under the hand."""
    person = tenancy.person(request)
    asked = decisions.approval(person, id)
    if request.headers.get("HX-Request") != "true":
        return redirect("approval", id)
    given = list(asked.decisions.select_related("person").order_by("decided_at", "id"))
    seen, token = request.GET.get("seen", "")[:100], _token(asked, given)
    newer = Approval.objects.filter(task=asked.task, asked_at__gt=asked.asked_at).order_by("asked_at").last()
    wish = Wish.kept(request.GET.get("from", ""))
    context = {
        "approval": asked, "newer": newer, "changed": seen != token, "carried": wish.carried,
        "decided": given[-1] if given and given[-1].withdrawn_at is None else None,
        "votes_moved": seen.split(".")[2:3] != token.split(".")[2:3], "expired": now() >= asked.deadline_at,
    }
    return regions.answer(request, "approvals/live.html", "approvals/live.html", context)


def when(moment: datetime | None) -> str:
    if moment is None:
        return "—"
    return date_format(timezone.localtime(moment), _("j M Y, H:i:s")) + f" {moments.offset(moment)}"


def conflict(request: HttpRequest, person: User, asked: Approval, lost: RuntimeAppError) -> HttpResponse:
    """Somebody or something was first: who, when, and that nothing was recorded now."""
    tenancy.show(request, asked.tenant)
    asked.refresh_from_db()
    asked.task.refresh_from_db()
    given = list(asked.decisions.select_related("person", "for_person").order_by("decided_at", "id"))
    standing = [d for d in given if d.withdrawn_at is None]
    last = standing[-1] if standing and isinstance(lost, AlreadyDecided) else None
    title, text = _("It changed while you were looking"), lost.message
    if last is not None and last.person_id == person.pk:
        title = _("Already decided by you")
        text = _("You decided this before: %(what)s, %(when)s. That stands; what you sent now was not recorded.") % {
            "what": words.look(words.DECISION, last.verdict).word, "when": when(last.decided_at)}
    elif last is not None:
        title = _("%(person)s decided this first") % {"person": last.person.shown_name}
        text = _("%(person)s decided while you were reading: %(what)s, %(when)s. Yours was not recorded.") % {
            "person": last.person.shown_name, "what": words.look(words.DECISION, last.verdict).word,
            "when": when(last.decided_at)}
    elif lost.code == "expired":
        title, ended = _("Too late"), {"when": when(asked.deadline_at)}
        text = _("The time to decide ended at %(when)s. Your decision was not recorded.") % ended
    newer = Approval.objects.filter(task=asked.task, asked_at__gt=asked.asked_at).order_by("asked_at").last()
    wish = Wish.kept(request.POST.get("from", ""))
    context = {"approval": asked, "task": asked.task, "decisions": given, "title": title, "text": text, "newer": newer,
               "back_url": wish.url(), "carried": wish.carried}
    return render(request, "approvals/conflict.html", context, status=409)
