"""What a forked child may be asked to do. Each act runs the product as it is; only time is moved, never the answers."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import close_old_connections, connection

from approvals import decisions
from approvals.models import Approval
from runtime_app import accounts, jobs, members, points, rows, tasks, watch
from runtime_app.errors import RuntimeAppError
from runtime_app.models import RuntimeClock, Task, Tenant, User
from runtime_app.states import FINAL, Status
from runtime_app.tasks import Request

log = logging.getLogger(__name__)


def warm_up() -> None:
    """Import what every child needs, before any of them is forked."""
    import rq
    import stripe

    import runtime_app.worker

    assert rq and stripe and runtime_app.worker and jobs.ports()
    gc.freeze()  # so that a child's first collection does not copy every page it was forked with


def found(*, threshold: int = 0) -> str:
    """Make Amber: Rita asks, Ada approves, Olga operates. Tells the key of an application."""
    RuntimeClock.objects.get_or_create(id=1)
    amber = members.found_tenant("amber", "Amber Traders", approval_threshold_minor=threshold)
    for name, role in (("rita", "requester"), ("ada", "approver"), ("olga", "operator")):
        members.add_person(amber, name, None, [role])
    accounts.keep(
        amber, "stripe", provider="stripe", api_key="sk_test_room", base_url=settings.SANDBOX_URL,
        notice_secrets=["whsec_amber"], is_default=True,
    )
    return members.issue_key(amber, "shop")[1]


def story(
    *, order: str, amount: int, key: str, accepted: str, passes: int = 60, until_passed: str = "",
    cancel_in_doubt: bool = False, hint: bool = False,
) -> dict[str, Any]:
    """Ask for a refund, or ask again under the same key; approve it; work until it has ended or needs a person.

    The file `accepted` appears when the request was answered. `until_passed` (`name:nth`) ends the story with the pass
    in which the process came through that point; `cancel_in_doubt` asks to cancel while the outcome is not known;
    `hint` has what was done looked at once more before that is the end, as a notice does.
    """
    rita = User.objects.get(username="rita")
    request = Request("refund", order, amount_minor=amount, currency="USD")
    task = tasks.create(rita, Tenant.objects.get(slug="amber"), request, request_key=key).task
    Path(accepted).touch()
    raised = 0
    for number in range(1, passes + 1):
        raised += not _as_a_job()
        task.refresh_from_db()
        if waits := task.status == Status.WAITING_APPROVAL:
            _approve(task, f"the-form-for-{key}")
        elif _has_ended(task):
            if not hint:
                return _told(task, number, raised)
            hint = False
            for operation in task.operations.all():
                watch.hint(operation.id)
            continue
        elif cancel_in_doubt and task.status == Status.RECONCILING and task.cancel_wished_at is None:
            tasks.cancel(rita, task.id, reason="the customer kept it")
        if until_passed and points.passed(until_passed.partition(":")[0]) >= int(until_passed.rpartition(":")[2]):
            return _told(task, number, raised)
        if not waits:
            _jump_to_what_is_due(task)
    return _told(task, passes, raised)


def ask_for(*, orders: list[str], amount: int) -> None:
    """Ask for one refund of each order, as Rita would."""
    rita, amber = User.objects.get(username="rita"), Tenant.objects.get(slug="amber")
    for order in orders:
        request = Request("refund", order, amount_minor=amount, currency="USD")
        tasks.create(rita, amber, request, request_key=order)


def work() -> None:
    """One wake job."""
    _as_a_job()


def approve(*, key: str, redis: str = "") -> str:
    """Ada approves the task of this request key, with Redis at that address; its status afterwards."""
    if redis:
        settings.REDIS_URL = redis
    task = Task.objects.get(request_key=key)
    _approve(task, f"the-form-for-{key}")
    task.refresh_from_db()
    return task.status


def _as_a_job() -> bool:
    """One wake job, with what the worker does around it; whether it went through."""
    close_old_connections()
    try:
        jobs.advance()
    except Exception:
        log.exception("the job failed")
        return False
    finally:
        close_old_connections()
    return True


def _approve(task: Task, nonce: str) -> None:
    asked = Approval.objects.filter(task=task, state="open").first()
    if asked is None:
        return
    try:
        decisions.decide(
            User.objects.get(username="ada"), asked.id, verdict="approve", reason="", fingerprint=asked.fingerprint,
            revision=task.revision, nonce=nonce,
        )
    except RuntimeAppError as refused:
        log.info("not approved: %s", refused.code)


def _has_ended(task: Task) -> bool:
    """The task has ended and everybody was told, or only a person can go on."""
    if task.status not in FINAL:
        return (task.status == Status.RECONCILING and task.attention is not None) or task.parked_reason == "case_open"
    return not task.intents.filter(done_at=None).exists()


def _told(task: Task, passes: int, raised: int) -> dict[str, Any]:
    return {"status": task.status, "passes": passes, "raised": raised, "task": str(task.id)}


def _jump_to_what_is_due(task: Task) -> None:
    """Move the database's clock to the task's next moment, or its next message's: a timer, or the end of a lease."""
    rows.run(
        "UPDATE runtime_clock SET advanced = advanced + greatest(interval '0', due - runtime_now()) FROM"
        " (SELECT min(due_at) AS due FROM (SELECT due_at FROM runtime_app_task WHERE id = %s UNION ALL"
        " SELECT due_at FROM runtime_app_intent WHERE task_id = %s AND done_at IS NULL) AS moments) AS next"
        " WHERE due IS NOT NULL",
        [task.id, task.id],
    )


def cancel(*, key: str) -> str:
    """Rita asks to cancel; what came of it in one word."""
    task = Task.objects.filter(request_key=key).first()
    if task is None:
        return "nothing"
    try:
        tasks.cancel(User.objects.get(username="rita"), task.id, reason="the customer kept it")
    except RuntimeAppError as refused:
        return refused.code
    task.refresh_from_db()
    return task.status


def check(*, control_url: str) -> list[str]:
    """Every invariant that is broken, our rows held against the sandbox's ledger."""
    import requests

    from runtime_app import invariants

    def told(what: str) -> Any:
        return requests.get(f"{control_url}/_sandbox/{what}", timeout=60).json()[what]

    return [str(violation) for violation in invariants.check(told("refunds"), requests=told("requests"))]


def rq_worker(*, timeout: int, passing: str) -> dict[str, Any]:
    """One wake job with this time limit through the real worker class: what RQ made of it, and how often it passed
    the point `passing`."""
    from rq.job import Job

    from runtime_app import bell, worker

    lane = worker.build("default")
    lane.connection.flushdb()
    job = lane.queues[0].enqueue_call(bell.ADVANCE, kwargs={"lane": "default"}, timeout=timeout, result_ttl=60,
                                      failure_ttl=3600)
    lane.work(burst=True, max_jobs=1, logging_level="WARNING")
    connection.close()
    found = Job.fetch(job.id, connection=lane.connection, serializer=lane.serializer)
    result = found.latest_result()
    why = (result.exc_string or "") if result else ""
    return {"job": found.get_status().value, "why": why, "passed": points.passed(passing)}
