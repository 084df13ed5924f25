"""Many approvals that wait for people, made by the product's own writers in bulk; nobody is rung for."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

CHUNK = 500
AMOUNT = 6000


def approvals(tenant: Any, requester: Any, count: int) -> None:
    """So many refunds that wait under the rules in force; whoever is to hear of them has heard."""
    for start in range(0, count, CHUNK):
        _chunk(tenant, requester, min(CHUNK, count - start))


def _chunk(tenant: Any, requester: Any, count: int) -> None:
    from django.conf import settings

    from approvals.in_force import in_force
    from approvals.requests import AskApproval
    from runtime_app import access, rows
    from runtime_app.births import NewTask, open_tasks
    from runtime_app.chronicle import Say
    from runtime_app.states import Status
    from runtime_app.transitions import Guard, Transition, Wanted, apply
    from runtime_app.workflows.refund.material import fingerprint

    held, now = in_force([tenant.id], "refund")[tenant.id], rows.now()
    rules = held.rules(settings.TIMING.approval_deadline)
    new, wanted = [], []
    for _ in range(count):
        order = f"W-{uuid4().hex[:12]}"
        facts = {
            "tenant": tenant.slug, "workflow": "refund", "version": 1, "order_ref": order, "payment_ref": f"pi_{order}",
            "captured_minor": 10000, "external_minor": 0, "amount_minor": AMOUNT, "currency": "USD",
            "destination": None, "reason": None, "policy_version": held.number,
        }
        task = NewTask(
            tenant_id=tenant.id, workflow="refund", workflow_version=1, request_key=uuid4().hex,
            request_sha256="0" * 64, actor=access.actor(requester), requester_id=requester.pk, order_ref=order,
            payment_ref=f"pi_{order}", amount_minor=AMOUNT, currency="USD",
        )
        mark = fingerprint(facts)
        asked = AskApproval.under(
            held, rules, fingerprint=mark, facts={**facts, "account": "stripe", "order_read": {}}, now=now, always=True,
        )
        new.append(task)
        wanted.append(Wanted(Guard(task.id, 1, Status.QUEUED), Transition(
            to=Status.WAITING_APPROVAL, events=(Say("approval.requested", {"approval": str(asked.id)}),),
            parts=(asked,), columns={"fingerprint": mark, "state": {"material": facts}}, due=asked.deadline_at,
        ), "worker:bulk"))
    open_tasks(new)
    apply(wanted)
    rows.run(
        "UPDATE runtime_app_intent SET done_at = runtime_now(), due_at = NULL"
        " WHERE done_at IS NULL AND task_id = ANY(%s)",
        [[task.id for task in new]],
    )
