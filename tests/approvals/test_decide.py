"""One path by which people decide: bound to what they saw, judged by the database's clock, first valid one wins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from approvals.models import Approval, Decision
from runtime_app import members, tasks
from runtime_app.errors import (
    AlreadyDecided,
    BalanceTooSmall,
    Conflict,
    Expired,
    FieldErrors,
    Forbidden,
    NotFound,
    RuntimeAppError,
    StaleFacts,
)
from runtime_app.models import Event, Task, Tenant
from tests.world import World


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run these at the same moment on threads of their own; each one's answer or refusal."""
    gate = threading.Barrier(len(calls))
    answers: list[Any] = [None] * len(calls)

    def run(index: int, call: Callable[[], Any]) -> None:
        try:
            gate.wait()
            answers[index] = call()
        except RuntimeAppError as refused:
            answers[index] = refused
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_approve_and_reject_at_the_same_moment_have_one_winner(world: World) -> None:
    """C14: a hundred rounds, one decision row and one event each, and the loser is told who decided."""
    order = world.order(10_000_000)
    for _ in range(100):
        task = world.ask(order, 6000)
        asked = world.approval(task)
        answers = together(
            lambda: world.decide(world.ada, asked), lambda: world.decide(world.abel, asked, "reject", "not plausible")  # noqa: B023
        )
        losers = [a for a in answers if isinstance(a, RuntimeAppError)]
        assert len(losers) == 1 and isinstance(losers[0], AlreadyDecided)
        assert losers[0].facts["decided_by"] in {"Ada Stone", "Abel Reed"}
        assert Decision.objects.filter(approval=asked).count() == 1
        decided = [e for e in world.events(task) if e in {"approval.granted", "approval.rejected"}]
        assert len(decided) == 1
    rejected = Task.objects.filter(order_ref=order, status="rejected")
    world.finish(*Task.objects.filter(order_ref=order), seconds=60)
    assert len(world.effects(order)) + rejected.count() == 100


def test_the_same_form_twice_is_one_decision(world: World) -> None:
    """C14: two tabs or a double click of one form; the second is told that it was recorded already."""
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    answers = together(*[lambda: world.decide(world.ada, asked, nonce="n" * 32) for _ in range(4)])
    assert [a.repeated for a in answers].count(False) == 1 and Decision.objects.filter(approval=asked).count() == 1
    with pytest.raises(AlreadyDecided) as second:
        world.decide(world.ada, asked, nonce="m" * 32)
    assert second.value.facts["decided_by"] == "Ada Stone"


def test_approve_while_the_request_is_cancelled_has_one_winner(world: World) -> None:
    """C14: no money moves when the cancel won; a cancel after the approval is the state table's business."""
    order = world.order(10_000_000)
    for _ in range(20):
        task = world.ask(order, 6000)
        asked = world.approval(task)
        together(lambda: world.decide(world.ada, asked), lambda: tasks.cancel(world.rita, task.id, reason="mistake"))  # noqa: B023
        world.finish(task)
        done = [r for r in world.effects(order) if r["operation_id"] in {str(o.id) for o in task.operations.all()}]
        assert (task.status == "completed") == bool(done)


def test_a_decision_counts_before_the_deadline_and_not_at_it(world: World) -> None:
    """C16: judged by the database's clock at the moment of deciding, whether or not the sweep has run."""
    early = world.approval(world.ask(world.order(), 6000))
    world.clock(seconds=world.timing.approval_deadline - 60)
    world.decide(world.ada, early)
    late = world.approval(world.ask(world.order(), 6000))
    world.clock(seconds=world.timing.approval_deadline)
    with pytest.raises(Expired, match="ended at"):
        world.decide(world.ada, late)
    assert not Decision.objects.filter(approval=late).exists()
    world.until(lambda: Task.objects.get(id=late.task_id).status == "rejected")
    expired = Event.objects.get(task_id=late.task_id, type="approval.expired")
    assert expired.actor.startswith("worker:")
    assert Approval.objects.get(id=late.id).state == "expired"


def test_expiry_and_approval_at_the_same_moment_are_never_both(world: World) -> None:
    """C16: the sweep and the post together; exactly one of expired and approved."""
    order = world.order(10_000_000)
    for _ in range(30):
        task = world.ask(order, 6000)
        asked = world.approval(task)
        world.clock(seconds=world.timing.approval_deadline - 0.02)
        together(lambda: world.decide(world.ada, asked), world.work)  # noqa: B023
        world.finish(task)
        told = world.events(task)
        assert ("approval.expired" in told) != ("approval.granted" in told)
        assert Decision.objects.filter(approval=asked).count() == told.count("approval.granted")


def _lose_the_role(world: World) -> None:
    members.take_role(world.ada, world.amber, "approver")


def _deactivate(world: World) -> None:
    world.ada.is_active = False
    world.ada.save(update_fields=["is_active"])


@pytest.mark.parametrize("lose", [_lose_the_role, _deactivate])
def test_authority_is_read_again_at_execution(world: World, lose: Callable[[World], None]) -> None:
    """C20 a, b, M21: an approval by somebody who has lost the right since does not count; it is asked anew."""
    order = world.order()
    task = world.ask(order, 6000)
    asked = world.approval(task)
    world.decide(world.ada, asked)
    lose(world)
    again = world.approval(task)
    assert again.id != asked.id and world.effects(order) == []
    assert "authority" in world.said(task, "task.judged_anew")["why"]
    assert Approval.objects.get(id=asked.id).state == "superseded"
    world.decide(world.abel, again)
    world.finish(task)
    assert world.operation(task).authority["approvers"] == ["abel"] and len(world.effects(order)) == 1


def test_a_suspended_tenant_is_held(world: World) -> None:
    """C20 d: nothing is sent while the tenant is suspended; the task is parked with the reason."""
    order = world.order()
    task = world.ask(order, 6000)
    world.decide(world.ada, world.approval(task))
    Tenant.objects.filter(id=world.amber.id).update(suspended_at=task.created_at)
    world.work()
    task.refresh_from_db()
    assert (task.status, task.parked_reason) == ("ready", "tenant_suspended") and world.effects(order) == []


def test_a_material_change_supersedes_the_approval(world: World) -> None:
    """M20, C10: money refunded outside of us is a material fact; a note is not."""
    order = world.order()
    task = world.ask(order, 6000)
    asked = world.approval(task)
    world.sandbox.patch_order(order, note="the customer called")
    world.decide(world.ada, asked)
    world.finish(task)
    assert task.status == "completed"
    other_order = world.order()
    other = world.ask(other_order, 6000)
    other_asked = world.approval(other)
    world.sandbox.patch_order(other_order, outside_refund={"payment_ref": f"pi_{other_order}", "amount_minor": 1000})
    world.decide(world.ada, other_asked)
    again = world.approval(other)
    assert again.id != other_asked.id and again.facts["external_minor"] == 1000
    assert world.said(other, "approval.superseded")["changed"] == ["external_minor"]


def test_the_requester_cannot_decide(world: World) -> None:
    """M21: also with the approver's role."""
    members.add_person(world.amber, "rita", None, ["approver"])
    asked = world.approval(world.ask(world.order(), 6000))
    with pytest.raises(Forbidden, match="yourself"):
        world.decide(world.rita, asked)


def test_people_without_the_right_or_of_another_tenant_cannot_decide(world: World) -> None:
    """M04: Bea of Birch is told what an unknown id is told; Sam may look and not decide."""
    asked = world.approval(world.ask(world.order(), 6000))
    with pytest.raises(NotFound):
        world.decide(world.bea, asked)
    with pytest.raises(Forbidden):
        world.decide(world.sam, asked)
    assert not Decision.objects.exists()


def test_it_refuses_a_stale_fingerprint_and_a_stale_revision(world: World) -> None:
    """C14, console rule 3: the form carries what was seen."""
    asked = world.approval(world.ask(world.order(), 6000))
    with pytest.raises(StaleFacts):
        world.decide(world.ada, asked, fingerprint="0" * 64)
    with pytest.raises(Conflict):
        world.decide(world.ada, asked, revision=asked.task.revision + 1)
    with pytest.raises(FieldErrors):
        world.decide(world.ada, asked, "reject")
    assert not Decision.objects.exists()


def test_an_amended_request_is_asked_anew(world: World) -> None:
    """Runtime: what was asked is superseded; a decision on the old page is refused."""
    order = world.order()
    task = world.ask(order, 6000)
    asked = world.approval(task)
    tasks.amend(world.rita, task.id, revision=asked.task.revision, amount_minor=7000, reason=None)
    with pytest.raises(StaleFacts):
        world.decide(world.ada, asked)
    again = world.approval(task)
    assert again.facts["amount_minor"] == 7000
    world.decide(world.ada, again)
    world.finish(task)
    assert [r["amount_minor"] for r in world.effects(order)] == [7000]


def test_a_promise_that_no_longer_fits_is_refused_naming_what_remains(world: World) -> None:
    """M03: the hold is taken with the last decision, or that decision is refused."""
    order = world.order(10000)
    first, second = world.ask(order, 6000), world.ask(order, 6000)
    asked, other = world.approval(first), world.approval(second)
    world.decide(world.ada, asked)
    with pytest.raises(BalanceTooSmall, match=r"40\.00 USD"):
        world.decide(world.abel, other)
    world.finish(first)
    assert len(world.effects(order)) == 1 and not Decision.objects.filter(approval=other).exists()


def test_an_approver_may_ask_for_more_and_is_asked_again(world: World) -> None:
    """M38: the question goes to the requester; the answer comes back to the approvers."""
    task = world.ask(world.order(), 6000)
    world.decide(world.ada, world.approval(task), "ask_input", "Which item?")
    task.refresh_from_db()
    assert task.state["waiting_for"] == {"answer": "Which item?"}
    tasks.supply_input(world.rita, task.id, revision=task.revision, fields={"answer": "The lamp"})
    world.decide(world.ada, world.approval(task))
    world.finish(task)
    assert task.status == "completed"
