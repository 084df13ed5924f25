"""The parts of a task: its operations with their calls, its attempts with their steps, its approvals with the votes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest
from ninja import Router

from approvals.models import Approval, Decision
from runtime_app import access
from runtime_app.api import queries, shown
from runtime_app.api.keys import Key, account
from runtime_app.api.refusals import READS
from runtime_app.api.schemas import Approvals, AttemptPage, EventPage, Operations
from runtime_app.models import Attempt, Call, Event, EventPayload, Operation, Step

MOST = 200  # operations or approvals of one task that are shown; the newest
CALLS_MOST = 50  # calls shown of one operation; the newest

router = Router(auth=Key(), tags=["parts of a task"])


@router.get("/tasks/{task_id}/events", response={200: EventPage, **READS}, summary="Read a task's events")
def list_events(
    request: HttpRequest,
    task_id: str,
    after: queries.AfterSeq = 0,
    limit: queries.Limit = 100,
) -> dict[str, Any]:
    queries.only(request, "after", "limit")
    task = access.task(account(request), task_id)
    rows = list(Event.objects.filter(task=task, seq__gt=after).order_by("seq")[: limit + 1])
    page = rows[:limit]
    last = page[-1].seq if page else after
    said = EventPayload.objects.filter(task=task, seq__gt=after, seq__lte=last).values_list("seq", "data")
    payloads = dict(said) if page else {}
    return {
        "events": [shown.event(row, payloads.get(row.seq)) for row in page],
        "next_after": last,
        "more": len(rows) > limit,
    }


@router.get("/tasks/{task_id}/operations", response={200: Operations, **READS}, summary="Read a task's operations")
def list_operations(request: HttpRequest, task_id: str) -> dict[str, Any]:
    """What was done, or may have been done, at a provider; oldest first."""
    task = access.task(account(request), task_id)
    rows = list(Operation.objects.filter(task=task).order_by("-ordinal")[:MOST])[::-1]
    newest = Window(RowNumber(), partition_by=F("operation_id"), order_by=[F("started_at").desc(), F("id").desc()])
    calls = Call.objects.filter(operation__in=rows).annotate(n=newest).filter(n__lte=CALLS_MOST)
    by_operation = _grouped((call.operation_id, call) for call in calls.order_by("started_at", "id"))
    return {"operations": [shown.operation(row, by_operation[row.id]) for row in rows]}


@router.get("/tasks/{task_id}/attempts", response={200: AttemptPage, **READS}, summary="Read a task's attempts")
def list_attempts(
    request: HttpRequest,
    task_id: str,
    after: queries.AfterFence = 0,
    limit: queries.Limit = 100,
) -> dict[str, Any]:
    """Each execution of the task under one lease, with the steps it took; oldest first."""
    queries.only(request, "after", "limit")
    task = access.task(account(request), task_id)
    rows = list(Attempt.objects.filter(task=task, fence__gt=after).order_by("fence")[: limit + 1])
    page = rows[:limit]
    steps = Step.objects.filter(task=task, fence__in=[row.fence for row in page]).order_by("ended_at", "id")
    by_fence = _grouped((step.fence, step) for step in steps)
    return {
        "attempts": [shown.attempt(row, by_fence[row.fence]) for row in page],
        "next_after": page[-1].fence if page else after,
        "more": len(rows) > limit,
    }


@router.get("/tasks/{task_id}/approvals", response={200: Approvals, **READS}, summary="Read a task's approvals")
def list_approvals(request: HttpRequest, task_id: str) -> dict[str, Any]:
    """What people were asked and what they said; oldest first. People decide in the console, applications never."""
    task = access.task(account(request), task_id)
    rows = list(Approval.objects.filter(task=task).order_by("-asked_at", "-id")[:MOST])[::-1]
    votes = Decision.objects.filter(approval__in=rows).select_related("person", "for_person").order_by(
        "decided_at", "id")
    by_approval = _grouped((vote.approval_id, vote) for vote in votes)
    return {"approvals": [shown.approval(row, by_approval[row.id]) for row in rows]}


def _grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for name, member in pairs:
        groups[name].append(member)
    return groups
