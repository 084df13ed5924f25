from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from approvals.models import OPEN, Approval
from runtime_app import access
from runtime_app import tasks as verbs
from runtime_app.console import (
    facts,
    forms,
    keyset,
    news,
    outlook,
    queue,
    regions,
    search,
    story,
    tenancy,
    timeline,
    words,
)
from runtime_app.console.tags import asked_by, passed_on_by, printable
from runtime_app.console.views.door import now, page
from runtime_app.errors import Conflict, FieldErrors
from runtime_app.models import Attempt, Case, Operation, Step, Task
from runtime_app.states import BEFORE_SUBMISSION, FINAL, Status


@page("GET")
def tasks(request: HttpRequest) -> HttpResponse:
    """The current tenant's tasks: filtered by state, searched by any id, paged by position."""
    tenant, person = tenancy.current(request), tenancy.person(request)
    wanted, chosen = request.GET.get("q", "").strip(), request.GET.get("status", "")
    chosen = chosen if chosen in set(Status) else ""
    if wanted:
        found = [t for t in search.find(person, tenant, wanted) if not chosen or t.status == chosen]
        listed = keyset.Page(found, None, first=True)
    else:
        rows = access.tasks(person).filter(tenant=tenant, **({"status": chosen} if chosen else {}))
        listed = keyset.page(rows, request.GET.get("cursor", ""), by="created_at")
    context = {
        "rows": listed.rows, "first": listed.first, "older": listed.older and _url(status=chosen, cursor=listed.older),
        "first_url": _url(status=chosen), "all_url": _url(), "q": wanted[:200], "chosen": chosen,
        "chips": _chips(chosen, wanted[:200]),
    }
    return regions.answer(request, "console/tasks.html", "console/task_rows.html", context)


def _url(**query: str) -> str:
    kept = {name: value for name, value in query.items() if value}
    return reverse("tasks") + (f"?{urlencode(kept, errors='replace')}" if kept else "")


def _chips(chosen: str, wanted: str) -> list[dict[str, Any]]:
    chips: list[dict[str, Any]] = [{"url": _url(q=wanted), "label": _("All"), "current": not chosen}]
    for status, look in words.STATUS.items():
        chips.append({
            "url": _url(status=status, q=wanted), "label": look.word, "shape": look.shape, "current": status == chosen,
        })
    return chips


@page("GET")
def task(request: HttpRequest, id: UUID) -> HttpResponse:
    return _task_page(request, access.task(tenancy.person(request), id))


@page("GET")
def task_story(request: HttpRequest, id: UUID) -> HttpResponse:
    """The story alone, for the page that shows it; opened by hand it leads to that page."""
    if request.headers.get("HX-Request") != "true":
        return redirect("task", id)
    shown = access.task(tenancy.person(request), id)
    story_now = _story(shown, request.GET.get("seen"), queue.of_task(tenancy.person(request), shown))
    return regions.answer(request, "console/task.html", "console/task_story.html", story_now)


@page("POST")
def task_input(request: HttpRequest, id: UUID) -> HttpResponse:
    shown = access.task(tenancy.person(request), id, do="supply_input")
    form = _input_form(shown, request.POST)
    if form is None:
        raise Conflict(_("This task no longer waits for input; nothing was recorded."))
    if form.is_valid():
        try:
            verbs.supply_input(
                tenancy.person(request), id, revision=form.cleaned_data["revision"], fields=form.given()
            )
        except FieldErrors as refused:
            forms.show_refusal(form, refused)
        else:
            return _recorded(request, id, _("Recorded. The request is judged with it now."))
    return _task_page(request, shown, input_form=form)


@page("POST")
def task_amend(request: HttpRequest, id: UUID) -> HttpResponse:
    shown = access.task(tenancy.person(request), id, do="amend_tasks")
    form = forms.AmendForm(request.POST)
    if form.is_valid():
        try:
            verbs.amend(tenancy.person(request), id, revision=form.cleaned_data["revision"], **form.changes(shown))
        except FieldErrors as refused:
            forms.show_refusal(form, FieldErrors(_typed(refused)))
        else:
            return _recorded(request, id, _("The request was changed and is judged anew."))
    return _task_page(request, shown, amend_form=form)


def _typed(refused: FieldErrors) -> dict[str, str]:
    return {"amount" if name == "amount_minor" else name: sentence for name, sentence in refused.errors.items()}


@page("POST")
def task_cancel(request: HttpRequest, id: UUID) -> HttpResponse:
    shown = access.task(tenancy.person(request), id, do="cancel_tasks")
    form = forms.CancelForm(request.POST)
    if form.is_valid():
        try:
            ended = verbs.cancel(tenancy.person(request), id, reason=form.cleaned_data["reason"])
        except FieldErrors as refused:
            forms.show_refusal(form, refused)
        else:
            wished = _("Your wish to cancel is recorded. What really happened is being found out.")
            done = _("The request is cancelled. Nothing was sent to the provider.")
            return _recorded(request, id, done if ended.status == Status.CANCELLED else wished)
    return _task_page(request, shown, cancel_form=form)


def _recorded(request: HttpRequest, id: UUID, sentence: str) -> HttpResponse:
    messages.success(request, sentence)
    return redirect("task", id)


def _input_form(task: Task, data: Any = None) -> forms.InputForm | None:
    asked = task.state.get("waiting_for")
    if task.status != Status.WAITING_INPUT or not isinstance(asked, dict):
        return None
    return forms.InputForm(data, asked=asked, task=task, initial={"revision": task.revision})


def _task_page(request: HttpRequest, task: Task, **bound: Form) -> HttpResponse:
    """The whole page; `bound` holds the form that was refused, shown again with what stands against it."""
    person, tenant = tenancy.person(request), task.tenant
    tenancy.show(request, tenant)
    rights = ("supply_input", "amend_tasks", "cancel_tasks", "see_approvals")
    may = {right: access.may(person, tenant.id, right) for right in rights}
    approval = Approval.objects.filter(task=task, state=OPEN).first()
    through, cases = passed_on_by(task), queue.of_task(person, task)
    context: dict[str, Any] = {
        **_story(task, str(task.revision), cases),
        "cases": cases,
        "task": task,
        "heading": _("Refund on order %(ref)s") % {"ref": printable(task.order_ref or "—")},
        "asked_by": printable(asked_by(task)) + (f" {_('through')} {printable(through)}" if through else ""),
        "facts": facts.of_task(task),
        "operations": task.operations.order_by("ordinal"),
        "attempts": _attempts(task),
        "open_approval_url": approval and may["see_approvals"] and reverse("approval", args=[approval.id]),
        "submitted": task.status not in BEFORE_SUBMISSION,
    }
    if may["supply_input"]:
        context["input_form"] = _input_form(task)
    if may["amend_tasks"] and task.status in BEFORE_SUBMISSION:
        context["amend_form"] = forms.AmendForm.of(task)
    if may["cancel_tasks"] and task.status not in FINAL and not task.cancel_wished_at:
        context["cancel_form"] = forms.CancelForm()
    response = regions.answer(request, "console/task.html", "console/task_story.html", context | bound)
    response.status_code = 422 if bound else response.status_code
    return response


def _story(task: Task, seen: str | None, cases: list[Case]) -> dict[str, Any]:
    told = timeline.read(task)
    asks = queue.asks_people(task)
    attention = task.attention if asks or task.status not in FINAL else None
    steps = Step.objects.filter(task=task)
    operation = Operation.objects.filter(task=task).order_by("-ordinal").first()
    approval = Approval.objects.filter(task=task).prefetch_related("decisions").order_by("-asked_at", "-id").first()
    return {
        "days": timeline.tell(task, told, news.lines(task)),
        "split": timeline.split(told, steps, now(), over=task.status in FINAL),
        "next": outlook.outlook(task, operation, approval, cases[0] if cases else None, asks=asks),
        "attention_text": attention and str(story.CASES.get(attention, attention)),
        "moved_on": seen is not None and seen != str(task.revision),
        "task": task,
    }


def _attempts(task: Task) -> list[Attempt]:
    steps: dict[int, list[Step]] = {}
    for step in Step.objects.filter(task=task).order_by("ended_at"):
        steps.setdefault(step.fence, []).append(step)
    attempts = list(Attempt.objects.filter(task=task).order_by("fence")[:200])
    for attempt in attempts:
        vars(attempt)["shown_steps"] = steps.get(attempt.fence, [])
    return attempts
