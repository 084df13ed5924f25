"""What people do about an open approval besides deciding it: each a form that is posted, and back to where it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from approvals import decisions, verbs
from approvals.models import Approval
from runtime_app.console import approval_forms, tenancy
from runtime_app.console.approval_forms import CommentForm
from runtime_app.console.forms import show_refusal
from runtime_app.console.inbox import Wish
from runtime_app.console.views import deciding
from runtime_app.console.views.door import now, page
from runtime_app.errors import Conflict, FieldErrors
from runtime_app.models import User


def _do(request: HttpRequest, id: UUID, act: Callable[[User], object], done: str) -> HttpResponse:
    """Do it, or show what happened instead; then back to the list or the approval it was done from."""
    person = tenancy.person(request)
    asked = decisions.approval(person, id)
    try:
        act(person)
    except Conflict as lost:
        return deciding.conflict(request, person, asked, lost)
    messages.success(request, done)
    return _back(request, asked)


def _back(request: HttpRequest, asked: Approval) -> HttpResponse:
    wish = Wish.kept(request.POST.get("from", ""))
    if request.POST.get("then") == "list":
        return redirect(wish.url())
    return redirect(deciding.address(asked, wish))


@page("POST")
def claim(request: HttpRequest, id: UUID) -> HttpResponse:
    return _do(request, id, lambda person: verbs.claim(person, id), _("You have it in hand; others see that."))


@page("POST")
def release(request: HttpRequest, id: UUID) -> HttpResponse:
    return _do(request, id, lambda person: verbs.release(person, id), _("It is out of your hand."))


@page("POST")
def withdraw(request: HttpRequest, id: UUID) -> HttpResponse:
    done = _("Your agreement is taken back; you may decide anew.")
    return _do(request, id, lambda person: verbs.withdraw_vote(person, id), done)


@page("POST")
def snooze(request: HttpRequest, id: UUID) -> HttpResponse:
    """Put it out of one's own inbox; a row of the list asks for the next morning, or sooner near the deadline."""
    asked, moment = decisions.approval(tenancy.person(request), id), now()
    name = request.POST.get("snooze-until", "")
    if request.POST.get("then") == "list":
        offered = [key for key, _word in approval_forms.ahead(moment, asked.deadline_at) if key != "days"]
        name = offered[-1] if offered else ""
    if not name:
        messages.error(request, _("There is too little time until the deadline to put it away."))
        return _back(request, asked)
    try:
        until = approval_forms.moment(name, moment)
        done = _("It is out of your list until then. Its deadline stays what it is.")
        return _do(request, id, lambda person: verbs.snooze(person, id, until=until), done)
    except ValueError:
        messages.error(request, _("Choose one of the times."))
    except FieldErrors as refused:
        messages.error(request, " ".join(refused.errors.values()))
    return _back(request, asked)


@page("POST")
def wake(request: HttpRequest, id: UUID) -> HttpResponse:
    return _do(request, id, lambda person: verbs.snooze(person, id, until=None), _("It is back in your list."))


@page("POST")
def comment(request: HttpRequest, id: UUID) -> HttpResponse:
    form = CommentForm(request.POST)

    def act(person: User) -> object:
        return verbs.comment(person, id, text=request.POST.get("text", ""))

    return _or_shown(request, id, act, _("Your comment is recorded."), form, "comment_form")


@page("POST")
def hand_over(request: HttpRequest, id: UUID) -> HttpResponse:
    person = tenancy.person(request)
    form = deciding.hand_over_form(person, decisions.approval(person, id), request.POST)

    def act(person: User) -> object:
        return verbs.hand_over(person, id, to=request.POST.get("over-to", ""), text=request.POST.get("over-text", ""))

    return _or_shown(request, id, act, _("It is handed over."), form, "over_form")


def _or_shown(
    request: HttpRequest, id: UUID, act: Callable[[User], object], done: str, form: Form, name: str
) -> HttpResponse:
    """As `_do`; what is refused stands beside its field on the page it came from."""
    try:
        return _do(request, id, act, done)
    except FieldErrors as refused:
        form.is_valid()
        form.errors.clear()
        show_refusal(form, refused)
        extra: dict[str, Any] = {name: form}
        person = tenancy.person(request)
        return deciding.decision_page(request, person, decisions.approval(person, id), status=422, **extra)
