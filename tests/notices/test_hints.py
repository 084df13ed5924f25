"""C06, C08: a notice makes somebody look, at once, and moves nothing by itself."""

from __future__ import annotations

import json
import threading
from typing import Any

from django.db import connection

from runtime_app import clock, tasks
from runtime_app.models import Balance, Call, Case, Evidence, Hold, Notice, Task
from tests.notices.teller import Teller, event, handled, heed, signature, status, until
from tests.world import World

NEVER: dict[str, object] = {  # nobody looks by himself while a test lasts, so that whoever looks was told to
    "reconcile_after": [86400.0], "reconcile_every": 86400.0, "pending_after": [86400.0], "pending_every": 86400.0,
    "pending_sla": 30 * 86400.0, "late_watch_every": 86400.0, "handover": 30 * 86400.0,
}


def _in_doubt(world: World, fault: str = "F4", **parameters: Any) -> tuple[str, Task]:
    """A refund whose outcome is not known, and that nobody looks at for a day."""
    world.retime(**NEVER)
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault(fault, times=1, match={"payment_ref": f"pi_{order}"}, **parameters)
    world.until(lambda: status(task) == "reconciling")
    return order, task


def _done(world: World) -> tuple[str, Task, str]:
    """A refund that was made and proved; with the provider's reference of it."""
    world.retime(**NEVER)
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    assert task.status == "completed"
    return order, task, str(world.effects(order)[0]["id"])


def _looks(task: Task) -> int:
    return Call.objects.filter(operation__task=task, kind="query").count()


def test_a_notice_of_a_refund_in_doubt_has_it_looked_at_at_once(world: World, stripe: Teller) -> None:
    """M23: the lost answer is found out by the look that the notice asked for."""
    order, task = _in_doubt(world)
    notice = stripe.tell(event(operation=world.operation(task).id))
    until(world, lambda: status(task) == "completed")
    assert handled(world, notice) == ["received: the provider is asked what happened"]
    events = world.events(task)
    assert events.index("notice.received") < events.index("operation.checked") and _looks(task) == 1
    assert world.said(task, "notice.received") == {
        "operation": str(world.operation(task).id), "kind": "refund.updated", "says": "succeeded"}
    evidence = Evidence.objects.get(kind="webhook_verified")
    assert (evidence.operation, evidence.finding, evidence.complete) == (world.operation(task), "says_succeeded", False)
    assert evidence.body_sha256 == notice.body_sha256
    assert world.operation(task).resolved_by != evidence, "a notice proves nothing"
    assert len(world.effects(order)) == 1


def test_a_notice_that_lies_is_a_look_and_no_more(world: World, stripe: Teller) -> None:
    """C08: it says succeeded, and the provider has never seen it; then it says failed, and it was done."""
    order, task = _in_doubt(world, "F2")
    notice = stripe.tell(event(operation=world.operation(task).id, status="succeeded"))
    until(world, lambda: _looks(task) == 1 and status(task))
    assert handled(world, notice) and task.status == "reconciling" and world.effects(order) == []
    assert world.operation(task).state == "unknown"

    _, other = _in_doubt(world)
    stripe.tell(event(operation=world.operation(other).id, status="failed", kind="refund.failed"))
    until(world, lambda: status(other) == "completed")


def test_a_notice_by_the_providers_reference_finds_the_operation(world: World, stripe: Teller) -> None:
    """C06: a pending refund; its notice names the refund only."""
    order, task = _in_doubt(world, "F21")
    refund = str(world.effects(order)[0]["id"])
    assert world.operation(task).provider_ref == refund
    world.sandbox.set_refund(refund, "succeeded")
    stripe.tell(event(refund))
    until(world, lambda: status(task) == "completed")


def test_pending_stays_reconciling_until_the_late_failure_days_after(world: World, stripe: Teller) -> None:
    """C06, first run: accepted is not done; the failure four days later ends it as failed and frees the hold."""
    order, task = _in_doubt(world, "F21")
    refund = str(world.effects(order)[0]["id"])
    stripe.tell(event(refund, status="pending", kind="refund.created"))
    until(world, lambda: _looks(task) == 1)
    assert status(task) == "reconciling" and world.operation(task).state == "pending"
    world.clock(days=4)
    world.sandbox.set_refund(refund, "failed")
    stripe.tell(event(refund, status="failed", kind="refund.failed"))
    until(world, lambda: status(task) == "failed")
    assert world.operation(task).state == "failed"
    assert Hold.objects.get(task=task).state == "released"
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.reserved_minor, balance.refunded_minor) == (0, 0)


def test_a_failure_after_completed_returns_the_money_and_is_not_silent(world: World, stripe: Teller) -> None:
    """C06, second run, row 24: the task keeps its end; operation, balance, mark, case and the blocked payment follow
    the money, and a new attempt is a new approved operation."""
    order, task, refund = _done(world)
    world.clock(days=3)
    world.sandbox.set_refund(refund, "failed")
    notice = stripe.tell(event(refund, status="failed", kind="refund.failed"))
    until(world, lambda: world.operation(task).state == "returned")
    assert handled(world, notice) == [
        "received: it says failed, and it was proved that it was done; the provider is asked"]
    assert status(task) == "completed" and task.attention == "RETURNED"
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.reserved_minor, balance.refunded_minor) == (0, 0)
    assert Case.objects.get(class_name="RETURNED").state == "open"
    again = world.ask(order, 500)
    world.until(lambda: Task.objects.get(id=again.id).parked_reason == "case_open")
    assert world.effects(order) == []
    told_again = stripe.tell(event(refund, status="failed", kind="refund.failed"))
    assert handled(world, told_again) == [
        "ignored: it says failed, and it is proved already that it was returned"]
    assert Case.objects.count() == 1


def test_any_repeat_and_any_order_has_one_effect_and_never_goes_back(world: World, stripe: Teller) -> None:
    """C08, the whole sequence: e2, then e1 older, e2 five times at once, e2 under another id, e3 failed and older."""
    order, task = _in_doubt(world)
    operation, refund = world.operation(task).id, str(world.effects(order)[0]["id"])
    e2 = event(refund, operation=operation, id="evt_e2", status="succeeded", ago=60)
    first = stripe.tell(e2)
    until(world, lambda: status(task) == "completed")
    before = (task.status_since, task.revision, world.events(task), _looks(task))
    e1 = stripe.tell(event(refund, operation=operation, id="evt_e1", status="pending", ago=180))
    assert _at_once(world, e2, 5) == [200] * 5
    twin = stripe.tell(e2 | {"id": "evt_e2_again"})
    e3 = stripe.tell(
        event(refund, operation=operation, id="evt_e3", status="failed", kind="refund.failed", ago=120))
    outcomes = handled(world, first, e1, twin, e3)
    heed(world)
    assert outcomes == [
        "received: the provider is asked what happened",
        "ignored: it says pending and is older than the proof that it was done; the provider is asked once more all"
        " the same",
        "ignored: it says succeeded, and it is proved already that it was done",
        "ignored: it says failed and is older than the proof that it was done; the provider is asked once more all"
        " the same",
    ]
    first.refresh_from_db()
    assert first.deliveries == 6 and Notice.objects.count() == 4
    assert status(task) == "completed"
    assert before[:3] == (task.status_since, task.revision, world.events(task))
    assert _looks(task) > before[3], "the provider itself was asked again, and its word stands"
    assert len(world.effects(order)) == 1 and Task.objects.count() == 1
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 1000
    assert not Case.objects.exists() and world.operation(task).state == "succeeded"


def test_a_success_of_another_refund_with_our_reference_is_looked_at(world: World, stripe: Teller) -> None:
    """F32, row 8: what is proved is proved of one refund; a second one that names our operation is news."""
    _, task, refund = _done(world)
    looked = _looks(task)
    same = stripe.tell(event(refund, operation=world.operation(task).id))
    assert handled(world, same) == ["ignored: it says succeeded, and it is proved already that it was done"]
    heed(world)
    assert _looks(task) == looked, "each of our own refunds is told of, and asks nothing of the provider"
    other = stripe.tell(event("re_another", operation=world.operation(task).id))
    assert handled(world, other)[0].endswith("the provider is asked once more all the same")
    until(world, lambda: _looks(task) == looked + 1)


def _at_once(world: World, about: dict[str, Any], many: int) -> list[int]:
    body, statuses, barrier = json.dumps(about).encode(), list[int](), threading.Barrier(many)
    header = signature(body)

    def post() -> None:
        try:
            barrier.wait(20)
            statuses.append(Teller(world.amber).post(body, header).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=post) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return statuses


def test_a_notice_wakes_what_waits_for_a_person_and_opens_nothing_anew(world: World, stripe: Teller) -> None:
    """Row 7: a frozen case is looked at when a notice hints, and stays frozen while the refund differs."""
    _, task = _in_doubt(world, "F29")
    until(world, lambda: Case.objects.filter(class_name="AMOUNT_MISMATCH", state="open").exists())
    task.refresh_from_db()
    assert task.due_at is None
    looked = _looks(task)
    notice = stripe.tell(event(operation=world.operation(task).id))
    until(world, lambda: _looks(task) == looked + 1)
    assert handled(world, notice) and status(task) == "reconciling" and Case.objects.count() == 1


def test_a_late_execution_is_found_when_the_provider_tells_of_it(world: World, stripe: Teller) -> None:
    """Row 23, R19: proved absent and cancelled, and yet it lands: operation and balance follow, a case opens."""
    order, task = _in_doubt(world, "F20", seconds=20_000)
    operation = world.operation(task)
    world.retime(reconcile_after=[0.05], reconcile_every=0.1)
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    world.finish(task, seconds=30)
    assert (status(task), world.operation(task).state) == ("cancelled", "not_executed")
    world.sandbox.advance(20_000)
    assert len(world.effects(order)) == 1
    notice = stripe.tell(event(operation=operation.id))
    until(world, lambda: world.operation(task).state == "succeeded")
    assert handled(world, notice) == [
        "received: it says succeeded, and it was proved that it was not executed; the provider is asked"]
    assert status(task) == "cancelled" and task.attention == "LATE_EXECUTION"
    assert Case.objects.get().class_name == "LATE_EXECUTION"
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 1000


def test_another_tenants_account_cannot_hint_at_an_operation(world: World, stripe: Teller) -> None:
    """C08, C38: Birch's provider signs rightly for Birch, and names Amber's operation."""
    _, task = _in_doubt(world)
    birch = Teller(world.birch, "whsec_birch")
    notice = birch.tell(event(operation=world.operation(task).id))
    assert handled(world, notice) == ["ignored: it names no operation of ours, and no payment"]
    assert "notice.received" not in world.events(task) and _looks(task) == 0
    assert not Evidence.objects.filter(kind="webhook_verified").exists()


def test_a_notice_of_something_else_is_ignored_at_once(world: World, stripe: Teller) -> None:
    notice = stripe.tell({"id": "evt_payout", "object": "event", "type": "payout.paid", "created": 5,
                          "livemode": False, "data": {"object": {"object": "payout", "id": "po_1"}}})
    heed(world)
    notice.refresh_from_db()
    assert (notice.outcome, notice.tries, notice.due_at) == ("ignored: it tells nothing of a refund", 1, None)


def test_the_other_mode_is_ignored_and_a_person_is_told_once(world: World, stripe: Teller) -> None:
    """F49: a live event at a test account. Nobody looks; the payment is stopped until a person has looked."""
    order, task, refund = _done(world)
    looked = _looks(task)
    told = [stripe.tell(event(refund, payment=f"pi_{order}", live=True, status="failed")) for _ in range(3)]
    assert {n.outcome for n in told} == {"ignored: it is of live mode, and the account is of test mode"}
    assert all(n.handled_at is not None and n.due_at is None for n in told)
    heed(world)
    assert _looks(task) == looked and world.operation(task).state == "succeeded"
    case = Case.objects.get()
    assert (case.class_name, case.payment_ref, case.order_ref, case.state) == (
        "ACCOUNT_OR_MODE", f"pi_{order}", order, "open")
    assert case.account_id == stripe.account.pk
    assert Evidence.objects.get(case=case).finding == "other_mode"
    again = world.ask(order, 500)
    world.until(lambda: Task.objects.get(id=again.id).parked_reason == "case_open")


def test_the_clock_rings_for_a_notice_whose_ring_was_lost(world: World, stripe: Teller, redis: Any) -> None:
    """C24: Redis may lose the ring; the notice is in PostgreSQL, and found there."""
    heed(world)
    assert clock.tick() == []
    stripe.tell(event(operation="nobody"))
    redis.flushall()
    assert clock.tick() == ["default"]
