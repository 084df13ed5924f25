"""What people and applications may ask of a task. Every door calls these; each checks access, input and guard."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from approvals.requests import CloseApprovals
from runtime_app import access, rows
from runtime_app.access import Principal
from runtime_app.bell import ring_after_commit
from runtime_app.births import NewTask, as_stored, open_tasks
from runtime_app.chronicle import Say, canonical
from runtime_app.errors import Conflict, FieldErrors, Forbidden, IdempotencyConflict, NotFound, RuntimeAppError
from runtime_app.ledger.balances import EndHold
from runtime_app.models import Membership, ServiceAccount, Session, Task, Tenant, User
from runtime_app.money import check_currency, check_minor
from runtime_app.states import BEFORE_SUBMISSION, FINAL, Status
from runtime_app.texts import check_key, check_ref, check_text
from runtime_app.transitions import NOW, Applied, Guard, Result, Transition, apply_one
from runtime_app.workflows import CURRENT, WORKFLOWS

GIVEN = ("payment_ref", "amount_minor", "currency", "reason", "on_behalf_of", "session")


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came through a door; None means not given. `create` checks all of it."""

    workflow: str
    order_ref: str
    payment_ref: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    reason: str | None = None
    session: str | None = None
    on_behalf_of: str | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Created:
    task: Task
    replayed: bool


def create(
    principal: Principal, tenant: Tenant, request: Request, *, request_key: str, follows: UUID | None = None
) -> Created:
    """Store the request as a task, once per key. `follows` names the task that it makes good: whoever works cases may
    ask for that, and people always decide it.

    Raises FieldErrors, Forbidden, NotFound (the key's task is not the caller's to see) or IdempotencyConflict.
    """
    if not access.may(principal, tenant.id, "work_reconciliation" if follows else "request_tasks"):
        raise Forbidden if access.may(principal, tenant.id, "see_tasks") else NotFound
    check_key(request_key)
    fields = _checked(request)
    person = principal if isinstance(principal, User) else _behind(tenant, request.on_behalf_of)
    requester_id = person.pk if person else None
    digest = hashlib.sha256(canonical({**fields, "on_behalf_of": requester_id}).encode()).hexdigest()
    new = NewTask(
        tenant_id=tenant.id, workflow=request.workflow, workflow_version=CURRENT[request.workflow],
        request_key=request_key, request_sha256=digest, actor=access.actor(principal),
        session_id=_session(tenant, request.session), requester_id=requester_id,
        service_account_id=principal.id if isinstance(principal, ServiceAccount) else None,
        order_ref=request.order_ref, payment_ref=request.payment_ref, amount_minor=request.amount_minor,
        currency=request.currency, reason=fields["reason"], metadata=request.metadata or {},
        state={"follows": str(follows)} if follows else {},
    )
    if (at := open_tasks([new]).get(new.id)) is not None:
        ring_after_commit()
        account = principal if isinstance(principal, ServiceAccount) else None
        return Created(as_stored(new, at, tenant=tenant, requester=person, account=account), replayed=False)
    return Created(_the_one_before(principal, tenant, request_key, digest), replayed=True)


def _the_one_before(principal: Principal, tenant: Tenant, request_key: str, digest: str) -> Task:
    task = access.tasks(principal).filter(tenant=tenant, request_key=request_key).first()
    if task is None:
        raise NotFound
    if task.request_sha256 != digest:
        raise IdempotencyConflict(task_id=str(task.id))
    return task


def _checked(request: Request) -> dict[str, Any]:
    """The request's meaning, canonical, every field checked; all errors are told together."""
    errors: dict[str, str] = {}
    fields: dict[str, Any] = {"workflow": request.workflow, "metadata": dict(request.metadata or {})}
    if not any(name == request.workflow and w.requestable for (name, _), w in WORKFLOWS.items()):
        errors["workflow"] = "There is no such workflow; use refund."
    checks: dict[str, Callable[[Any], Any]] = {
        "order_ref": lambda v: check_ref(v, "order_ref"), "payment_ref": lambda v: check_ref(v, "payment_ref"),
        "amount_minor": check_minor, "currency": check_currency,
        "reason": lambda v: check_text(v, "reason", most=500).strip() or None,
        "session": lambda v: check_ref(v, "session"),
    }
    for name, check in checks.items():
        value = getattr(request, name)
        fields[name] = None
        if value is None:
            continue
        try:
            fields[name] = check(value)
        except FieldErrors as refused:
            errors |= refused.errors
    if errors:
        raise FieldErrors(errors)
    return fields


def _behind(tenant: Tenant, username: str | None) -> User | None:
    """The person of this tenant who stands behind a service account's request."""
    if username is None:
        return None
    error = FieldErrors({"on_behalf_of": "Name an active person of this tenant who may ask for this."})
    try:
        check_text(username, "on_behalf_of", most=150)
    except FieldErrors:
        raise error from None
    member = Membership.objects.filter(tenant=tenant, person__username=username).select_related("person").first()
    if member is None or not access.may(member.person, tenant.id, "request_tasks"):
        raise error
    return member.person


def _session(tenant: Tenant, ref: str | None) -> UUID | None:
    if ref is None:
        return None
    try:
        with transaction.atomic():
            return Session.objects.get_or_create(tenant=tenant, ref=ref)[0].id
    except IntegrityError:  # made by somebody else in between
        return Session.objects.get(tenant=tenant, ref=ref).id


def supply_input(principal: Principal, task_id: object, *, revision: int, fields: Mapping[str, Any]) -> Task:
    """Give what a waiting task asked for; it is judged anew. Raises as `create` does, or Conflict."""
    task = access.task(principal, task_id, do="supply_input")
    _expect(task, revision, Status.WAITING_INPUT)
    asked = task.state.get("waiting_for", {})
    unknown = {name: "This was not asked for." for name in fields if name not in asked}
    missing = {name: "This is still missing." for name in asked if fields.get(name) in (None, "")}
    if unknown or missing:
        raise FieldErrors(unknown | missing)
    columns, told = _given(task, fields)
    columns["state"] = {k: v for k, v in {**task.state, **columns.get("state", {})}.items() if k != "waiting_for"}
    if fields.keys() - {"answer"}:
        columns["state"] |= _shaped(principal, task)
    transition = Transition(
        to=Status.QUEUED, events=(Say("task.input_given", {"fields": sorted(fields), **told}),), columns=columns,
        due=NOW,
    )
    return _done(principal, task, transition)


def _given(task: Task, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    errors: dict[str, str] = {}
    columns: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for name, value in fields.items():
        try:
            if name == "amount_minor":
                columns[name] = told[name] = check_minor(value)
            elif name == "currency":
                columns[name] = told[name] = check_currency(value)
            elif name == "payment_ref":
                columns[name] = told[name] = check_ref(value, name)
            elif name == "on_behalf_of":
                person = _behind(task.tenant, value)
                columns["requester_id"] = person and person.pk
                told[name] = person and person.username
            else:  # an approver's question: its answer is kept with the request
                told["answer"] = check_text(value, name, most=1000)
                columns["state"] = {"answer": told["answer"]}
        except FieldErrors as refused:
            errors |= refused.errors
    if errors:
        raise FieldErrors(errors)
    return columns, told


def amend(
    principal: Principal, task_id: object, *, revision: int, amount_minor: int | None, reason: str | None
) -> Task:
    """Change the request before submission: approvals are superseded, the hold is released, it is judged anew."""
    task = access.task(principal, task_id, do="amend_tasks")
    _expect(task, revision, *BEFORE_SUBMISSION)
    columns: dict[str, Any] = {}
    if amount_minor is not None:
        columns["amount_minor"] = check_minor(amount_minor)
    if reason is not None:
        columns["reason"] = check_text(reason, "reason", most=500).strip() or None
    if not columns:
        raise FieldErrors({"amount_minor": "Say what is to change: the amount, the reason or both."})
    changes = {name: {"then": getattr(task, name), "now": value} for name, value in columns.items()}
    columns["state"] = {k: v for k, v in task.state.items() if k != "waiting_for"} | _shaped(principal, task)
    columns["fingerprint"] = ""
    columns["ordinal"] = task.ordinal + (1 if task.operations.exists() else 0)
    transition = Transition(
        to=Status.QUEUED, events=(Say("task.amended", {"changes": changes}), *_ended(task, "approval.superseded")),
        columns=columns, due=NOW,
        parts=(EndHold(consumed=False), CloseApprovals("superseded", "the request was amended")),
    )
    return _done(principal, task, transition)


def _shaped(principal: Principal, task: Task) -> dict[str, Any]:
    """Who beside the requester said what is to be refunded: they do not decide it either."""
    people = set(task.state.get("shaped_by", ())) | ({principal.pk} if isinstance(principal, User) else set())
    return {"shaped_by": sorted(people)}


def cancel(principal: Principal, task_id: object, *, reason: str) -> Task:
    """Cancel before submission; after it, keep the wish and find out what happened. Final tasks raise Conflict."""
    reason = check_text(reason, "reason", most=500).strip()
    if not reason:
        raise FieldErrors({"reason": "Say why it is cancelled."})
    while True:
        task = access.task(principal, task_id, do="cancel_tasks")
        if task.status in FINAL:
            raise _conflict(task, f"This task has already ended: {task.status}.")
        if task.status not in BEFORE_SUBMISSION and task.cancel_wished_at is not None:
            return task
        result = _apply(principal, task, _cancelling(principal, task, reason))
        # The task may move between reading and writing, and then the other of the two ways applies.
        if isinstance(result, Applied):
            return access.task(principal, task_id)


def _cancelling(principal: Principal, task: Task, reason: str) -> Transition:
    if task.status in BEFORE_SUBMISSION:
        return Transition(
            to=Status.CANCELLED,
            events=(*_ended(task, "approval.cancelled"), Say("task.cancelled", {"why": reason})),
            parts=(EndHold(consumed=False), CloseApprovals("cancelled", reason)),
            columns={"cancel_reason": reason},
        )
    return Transition(
        events=(Say("task.cancel_wished", {"why": reason}),),
        columns={"cancel_wished_at": rows.now(), "cancel_wished_by": access.actor(principal), "cancel_reason": reason},
        keep_lease=True, wake=True, starts=None,
    )


def _ended(task: Task, approval_event: str) -> tuple[Say, ...]:
    """The events for what a task leaves behind when it goes back or ends before submission."""
    told: tuple[Say, ...] = ()
    if task.status == Status.WAITING_APPROVAL:
        told += (Say(approval_event),)
    if task.status == Status.READY:
        told += (Say("hold.released"),)
    return told


def _expect(task: Task, revision: int, *statuses: Status) -> None:
    if type(revision) is not int or not 0 < revision < 2**31:
        raise FieldErrors({"revision": "Use the revision you saw, a whole number."})
    if task.status not in statuses:
        raise _conflict(task, f"This is not possible while the task is {task.status.replace('_', ' ')}.")
    if task.revision != revision:
        raise _conflict(task, "The task has changed since you saw it; nothing was recorded.")


def _apply(principal: Principal, task: Task, transition: Transition) -> Result:
    guard = Guard(task.id, task.revision, Status(task.status))
    result = apply_one(guard, transition, actor=access.actor(principal))
    if isinstance(result, Applied):
        ring_after_commit()
    return result


def _done(principal: Principal, task: Task, transition: Transition) -> Task:
    if not isinstance(_apply(principal, task, transition), Applied):
        raise _conflict(access.task(principal, task.id), "The task changed at the same moment; nothing was recorded.")
    return access.task(principal, task.id)


def _conflict(task: Task, message: str) -> RuntimeAppError:
    return Conflict(message, status=task.status, revision=task.revision)
