"""F36 to F41: the sandbox tells the real door of what happens in it, and tells it badly."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from runtime_app import notices
from runtime_app.models import Account, Case, Evidence, Notice, Task
from runtime_app.sealing import seal
from tests.attack.bent import bend
from tests.notices.teller import Teller, handled, status, until
from tests.notices.test_hints import NEVER
from tests.sandbox_process import wait_until
from tests.world import World


def _stored(order: str, many: int) -> list[Notice]:
    """Wait until so many notices about the order's payment are stored."""

    def found() -> list[Notice]:
        stored = list(Notice.objects.filter(payment_ref=f"pi_{order}").order_by("received_at"))
        return stored if len(stored) >= many else []

    stored: list[Notice] = wait_until(found)
    return stored


def _of_the_refund(order: str) -> Notice:
    """Of the two notices of a refund that was made, the one that names it; the other is of its charge."""
    stored: Notice = wait_until(
        lambda: Notice.objects.filter(payment_ref=f"pi_{order}", kind="refund.created").first()
    )
    return stored


def _delivered(world: World, order: str, many: int) -> list[dict[str, Any]]:
    """Wait until the sandbox has tried so many notices of the order's payment; as it tells them."""

    def tried() -> list[dict[str, Any]]:
        told = [n for n in world.sandbox.notices(payment_ref=f"pi_{order}") if n["attempts"]]
        return told if len(told) >= many else []

    told: list[dict[str, Any]] = wait_until(tried)
    return told


def _pending(world: World) -> tuple[str, Task, str]:
    """A refund that the provider has accepted and told of, whose own next look is a day away."""
    world.retime(**NEVER)
    order = world.order()
    world.sandbox.fault("F21", times=1, match={"payment_ref": f"pi_{order}"})
    task = world.ask(order, 1000)
    world.until(lambda: status(task) == "reconciling")
    handled(world, *_stored(order, 2))
    return order, task, str(world.effects(order)[0]["id"])


def _arm(world: World, code: str, order: str, **parameters: Any) -> None:
    world.sandbox.fault(code, times=1, match={"payment_ref": f"pi_{order}"}, **parameters)


def test_an_ordinary_refund_is_told_and_nothing_comes_of_it(world: World, told_by_sandbox: Teller) -> None:
    """C08: what we did ourselves is told too; it is stored, and found to be nothing new."""
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    outcomes = handled(world, *_stored(order, 2))
    assert len(outcomes) == 2 and status(task) == "completed" and not Case.objects.exists()
    assert all(n["answers"][0]["answered"] == 200 for n in _delivered(world, order, 2))


@pytest.mark.parametrize(("end", "becomes"), [("succeeded", "completed"), ("failed", "failed")])
def test_a_change_is_told_and_found_at_once(
    world: World, told_by_sandbox: Teller, end: str, becomes: str
) -> None:
    """C06: nobody would look for a day; the notice has it looked at now."""
    order, task, refund = _pending(world)
    world.sandbox.set_refund(refund, end)
    until(world, lambda: status(task) == becomes)
    assert len(world.effects(order)) == (1 if end == "succeeded" else 0)


def test_a_lost_notice_costs_time_and_nothing_else(world: World, told_by_sandbox: Teller) -> None:
    """F36: the schedule is the net under notices that never come."""
    order, task, refund = _pending(world)
    _arm(world, "F36", order)
    world.sandbox.set_refund(refund, "succeeded")
    wait_until(lambda: [n for n in world.sandbox.notices(refund_id=refund) if n["state"] == "lost"])
    assert status(task) == "reconciling"
    world.clock(days=2)
    until(world, lambda: status(task) == "completed")


def test_a_notice_that_comes_many_times_counts_once(world: World, told_by_sandbox: Teller) -> None:
    """F37."""
    order, task, refund = _pending(world)
    _arm(world, "F37", order, copies=5)
    world.sandbox.set_refund(refund, "succeeded")
    until(world, lambda: status(task) == "completed")
    wait_until(lambda: Notice.objects.filter(payment_ref=f"pi_{order}", deliveries=5).exists())
    assert len(world.effects(order)) == 1


def test_notices_out_of_order_end_with_the_last_truth(world: World, told_by_sandbox: Teller) -> None:
    """F38: the notice of the success is held back until the one of the later failure has come."""
    order, task, refund = _pending(world)
    _arm(world, "F38", order)
    world.sandbox.set_refund(refund, "succeeded")
    world.sandbox.set_refund(refund, "failed")
    until(world, lambda: status(task) == "failed")
    handled(world, *_stored(order, 4))
    assert status(task) == "failed" and world.operation(task).state == "failed"


def test_a_notice_before_the_answer_of_the_request_leaves_the_sender_its_task(
    world: World, told_by_sandbox: Teller
) -> None:
    """F39: it comes while our own request is still waiting; the worker records its answer as if nothing had come."""
    order = world.order()
    _arm(world, "F39", order)
    task = world.ask(order, 1000)
    world.finish(task)
    notice = _of_the_refund(order)
    assert status(task) == "completed" and len(world.effects(order)) == 1
    assert world.events(task).count("operation.submitted") == 1 and world.events(task)[-1] == "task.completed"
    assert handled(world, notice)[0].startswith("ignored: it says succeeded")


def test_a_notice_for_a_task_in_a_workers_hand_is_taken_up_again_when_it_is_free(
    world: World, told_by_sandbox: Teller
) -> None:
    """F39: it comes while the sender waits for its answer, which says pending; the hint is not lost with the lease."""
    world.retime(**NEVER)
    order = world.order()
    world.sandbox.fault("F21", times=1, match={"payment_ref": f"pi_{order}"})
    sent, answer = threading.Event(), threading.Event()

    def held_back(real: Any, *args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        sent.set()
        assert answer.wait(30)
        return result

    task = world.ask(order, 1000)
    bend(world, payments={"create_refund": held_back})
    worker = threading.Thread(target=_work_once, args=(world,))
    worker.start()
    try:
        assert sent.wait(30)
        notice = _of_the_refund(order)
        notices.work(world.ports(), actor="worker:other", limit=5)
        notice.refresh_from_db()
        assert notice.outcome.startswith("received: a worker has the task in hand") and notice.handled_at is None
        assert status(task) == "executing"
        _arm(world, "F36", order)
        world.sandbox.set_refund(str(world.effects(order)[0]["id"]), "succeeded")
    finally:
        answer.set()
        worker.join(30)
    assert status(task) == "reconciling" and world.operation(task).state == "pending"
    until(world, lambda: status(task) == "completed")
    assert handled(world, notice) == ["received: the provider is asked what happened"]
    assert world.events(task).count("notice.received") == 1
    assert Evidence.objects.filter(kind="webhook_verified").count() == 1


def _work_once(world: World) -> None:
    try:
        world.work()
    finally:
        connection.close()


@pytest.mark.parametrize("how", ["bad_signature", "old_timestamp", "no_header", "other_secret"])
def test_a_badly_signed_notice_is_refused_and_the_truth_found_without_it(
    world: World, told_by_sandbox: Teller, how: str
) -> None:
    """F40."""
    order, task, refund = _pending(world)
    _arm(world, "F40", order, how=how)
    world.sandbox.set_refund(refund, "succeeded")

    def tried() -> list[dict[str, Any]]:
        return [n for n in world.sandbox.notices(refund_id=refund) if n["fault"] == "F40" and n["attempts"]]

    told = wait_until(tried)
    assert told[0]["answers"][0]["answered"] == 400
    assert len(_stored(order, 2)) == 2 and status(task) == "reconciling"
    world.clock(days=2)
    world.sandbox.clear_faults()
    until(world, lambda: status(task) == "completed")


def test_a_notice_about_an_operation_that_nobody_knows_changes_nothing(
    world: World, told_by_sandbox: Teller
) -> None:
    """F41: rightly signed, beside the true one; the true one counts, and nothing is made of the other."""
    order, task, refund = _pending(world)
    _arm(world, "F41", order)
    world.sandbox.set_refund(refund, "succeeded")
    until(world, lambda: status(task) == "completed")
    strangers = [n for n in _stored(order, 4) if n.refund_ref != refund]
    assert strangers
    assert {o[:37] for o in handled(world, *strangers)} == {"received: it is of no operation of ours"[:37]}
    assert Task.objects.count() == 1 and len(world.effects(order)) == 1 and not Case.objects.exists()


def test_while_a_secret_is_replaced_no_notice_is_lost(world: World, told_by_sandbox: Teller) -> None:
    """The tenant gives us the new secret first; the provider may sign with either until it has changed too."""
    _, _, refund = _pending(world)
    Account.objects.filter(pk=told_by_sandbox.account.pk).update(
        notice_secrets_sealed=seal('["whsec_next", "whsec_amber"]'))
    sent = world.sandbox.notice(refund_id=refund, times=1) + world.sandbox.notice(refund_id=refund, secret="whsec_next")
    assert [n["answers"][0]["answered"] for n in sent] == [200, 200]
