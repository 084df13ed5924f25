"""What people, the provider and the clock do in a scene, for a nursery's children."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any
from uuid import uuid4

from runtime_app import members, notices, rows, watch
from runtime_app.desk import reading, verbs
from runtime_app.errors import RuntimeAppError
from runtime_app.models import Account, Case, Operation, Task, Tenant, User
from tests.reliability.acts import work

_NEXT = """
UPDATE runtime_clock SET advanced = advanced + greatest(interval '0', next.due - runtime_now()) FROM (
    SELECT min(due_at) AS due FROM (
        SELECT due_at FROM runtime_app_task WHERE order_ref = %s AND parked_reason IS NULL
        UNION ALL SELECT i.due_at FROM runtime_app_intent i JOIN runtime_app_task t ON t.id = i.task_id
            WHERE t.order_ref = %s AND i.done_at IS NULL
        UNION ALL SELECT next_check_at FROM runtime_app_operation WHERE order_ref = %s
            AND state IN ('succeeded', 'failed', 'not_executed')
        UNION ALL SELECT l.due_at FROM runtime_app_paymentlook l JOIN runtime_app_balance b
            ON b.payment_ref = l.payment_ref WHERE b.order_ref = %s
    ) AS moments) AS next WHERE next.due IS NOT NULL
"""


def go_on(*, order: str, passes: int) -> None:
    """Work, and jump to what is due next about this order, so often."""
    for _ in range(passes):
        work()
        rows.run(_NEXT, [order] * 4)
    work()


def hint(*, order: str) -> None:
    """Something has hinted at the order's operations, as a notice or a statement does."""
    for operation in Operation.objects.filter(order_ref=order):
        watch.hint(operation.id)


def tell(*, order: str, says: str) -> str:
    """The provider's notice of the order's operation, rightly signed, which may lie; how it was received."""
    account, operation = Account.objects.get(ref="stripe"), Operation.objects.get(order_ref=order)
    now = int(rows.run("SELECT extract(epoch FROM runtime_now())::bigint")[0][0])
    about = {
        "id": f"re_{uuid4().hex}", "object": "refund", "payment_intent": operation.payment_ref, "status": says,
        "metadata": {"operation_id": str(operation.id)},
    }
    body = json.dumps({
        "id": f"evt_{uuid4().hex}", "object": "event", "type": "refund.updated", "created": now, "livemode": False,
        "data": {"object": about},
    }).encode()
    signed = hmac.new(b"whsec_amber", f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    receipt = notices.receive(
        "stripe", account.pk, headers={"Stripe-Signature": f"t={now},v1={signed}"}, body=body
    )
    return type(receipt).__name__


def at_the_desk(*, order: str, verb: str, by: str, **said: Any) -> str:
    """A second operator too: this person does that about the order's newest open case; `done`, or why not."""
    members.add_person(Tenant.objects.get(slug="amber"), "otto", None, ["operator"])
    person = User.objects.get(username=by)
    case = Case.objects.filter(order_ref=order, state="open").order_by("-opened_at").first()
    if case is None:
        return "no open case"
    shown = reading.read(person, case.id)
    try:
        getattr(verbs, verb)(
            person, case.id, revision=shown.case.revision, seen_sha256=shown.evidence_sha256, **said
        )
    except RuntimeAppError as refused:
        return refused.code
    return "done"


def ask_again(*, order: str, amount: int, key: str) -> None:
    """Rita asks for another refund of the order."""
    from runtime_app import tasks

    rita, amber = User.objects.get(username="rita"), Tenant.objects.get(slug="amber")
    tasks.create(rita, amber, tasks.Request("refund", order, amount_minor=amount, currency="USD"), request_key=key)


def wish(*, order: str) -> list[str]:
    """Rita wishes to cancel what she asked for."""
    from runtime_app import tasks

    rita = User.objects.get(username="rita")
    return [str(tasks.cancel(rita, task.id, reason="no longer wanted").status)
            for task in Task.objects.filter(order_ref=order)]
