"""Asking for tasks, reading them, and changing what was asked before it is submitted."""

from __future__ import annotations

import json
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from ninja.params.functions import Header

from runtime_app import access, tasks
from runtime_app.api import cursors, queries, shown
from runtime_app.api.keys import Key, account
from runtime_app.api.refusals import READS, WRITES
from runtime_app.api.schemas import AmendBody, CancelBody, InputBody, TaskBody, TaskOut, TaskPage
from runtime_app.errors import FieldErrors
from runtime_app.models import Task
from runtime_app.states import Status as TaskStatus
from runtime_app.tasks import Request
from runtime_app.texts import check_ref

METADATA_MOST = 8192  # bytes as JSON; a page of tasks shows two hundred of them

IdempotencyKey = Annotated[
    str, Header(alias="Idempotency-Key", description="Your own name for this request, once for ever in your tenant.")
]

router = Router(auth=Key(), tags=["tasks"])


@router.post("/tasks", response={202: TaskOut, **WRITES}, summary="Ask for a task")
def create_task(
    request: HttpRequest, response: HttpResponse, body: TaskBody, idempotency_key: IdempotencyKey
) -> Status[dict[str, Any]]:
    """Accepts the request and answers with its task at once; what becomes of it is read or streamed.

    The same key with the same meaning gives the same task again, marked `Idempotent-Replayed: true`; with another
    meaning it is refused as `idempotency_conflict`.
    """
    if body.metadata and len(json.dumps(body.metadata)) > METADATA_MOST:
        raise FieldErrors({"metadata": f"Use at most {METADATA_MOST} bytes of JSON."})
    caller = account(request)
    created = tasks.create(caller, caller.tenant, Request(**body.model_dump()), request_key=idempotency_key)
    told = shown.task(created.task)
    response["Location"] = told["links"]["self"]
    if created.replayed:
        response["Idempotent-Replayed"] = "true"
    return Status(202, told)


@router.get("/tasks", response={200: TaskPage, **READS}, summary="Read many tasks, newest first")
def list_tasks(
    request: HttpRequest,
    status: TaskStatus | None = None,
    order_ref: str | None = None,
    cursor: str | None = None,
    limit: queries.Limit = 50,
) -> dict[str, Any]:
    """A page by place, not by number: every task that was there at the start of a walk is met exactly once."""
    queries.only(request, "status", "order_ref", "cursor", "limit")
    caller = account(request)
    found = access.tasks(caller).select_related("session")
    if status is not None:
        found = found.filter(status=status)
    if order_ref is not None:
        found = found.filter(order_ref=check_ref(order_ref, "order_ref"))
    purpose = f"tasks:{caller.tenant_id}:{status or ''}:{order_ref or ''}"
    if cursor is not None:
        found = cursors.older_than(found, cursor, purpose=purpose)
    rows = list(found.order_by("-created_at", "-id")[: limit + 1])
    page, last = rows[:limit], rows[limit - 1] if len(rows) > limit else None
    return {
        "tasks": [shown.task(row) for row in page],
        "next_cursor": cursors.write(last.created_at, last.id, purpose=purpose) if last else None,
    }


@router.get("/tasks/{task_id}", response={200: TaskOut, **READS}, summary="Read one task")
def read_task(request: HttpRequest, task_id: str) -> dict[str, Any]:
    return shown.task(access.task(account(request), task_id))


@router.post("/tasks/{task_id}/input", response={200: TaskOut, **WRITES}, summary="Give what a task waits for")
def give_input(request: HttpRequest, task_id: str, body: InputBody) -> dict[str, Any]:
    """For a task that is `waiting_input`; it is judged anew."""
    return shown.task(tasks.supply_input(account(request), task_id, revision=body.revision, fields=body.fields))


@router.post("/tasks/{task_id}/amend", response={200: TaskOut, **WRITES}, summary="Change the request")
def amend_task(request: HttpRequest, task_id: str, body: AmendBody) -> dict[str, Any]:
    """Before submission only. Approvals are superseded and the request is judged anew."""
    changed = tasks.amend(
        account(request), task_id, revision=body.revision, amount_minor=body.amount_minor, reason=body.reason
    )
    return shown.task(changed)


@router.post(
    "/tasks/{task_id}/cancel", response={200: TaskOut, 202: TaskOut, **WRITES}, summary="Cancel, or wish for it"
)
def cancel_task(request: HttpRequest, task_id: str, body: CancelBody) -> Status[dict[str, Any]]:
    """200: cancelled. 202: it was submitted already, so the wish is kept until the truth is known."""
    task: Task = tasks.cancel(account(request), task_id, reason=body.reason)
    return Status(200 if task.status == TaskStatus.CANCELLED else 202, shown.task(task))
