"""Money that did not arrive is made good by a new refund with its own approval, once a case; nothing is sent again."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_app import access, members, tasks, watch
from runtime_app.desk import verbs
from runtime_app.errors import Conflict, FieldErrors, Forbidden
from runtime_app.models import Balance, Case, Task
from tests.desk.conftest import Desk
from tests.desk.test_two_persons import ABSENT
from tests.world import World


def came_back(desk: Desk, world: World, amount: int = 1000) -> tuple[str, Task, Case]:
    """F23, row 24, C06: settled, and back again days later."""
    order = world.order()
    world.sandbox.fault("F23", times=1, match={"payment_ref": f"pi_{order}"}, seconds=2 * 86400)
    task = world.ask(order, amount)
    world.finish(task)
    world.sandbox.advance(3 * 86400)

    def back() -> Case | None:
        watch.hint(world.operation(task).id)
        watch.watch(world.ports(), actor="worker:in-test")
        return Case.objects.filter(task=task, class_name="RETURNED").first()

    return order, task, world.until(back)


def _start(desk: Desk, person: Any, case: Case, amount: int = 1000, **more: Any) -> Task:
    started: Task = desk.do(verbs.start_compensation, person, case, amount_minor=amount, reason="Card closed.", **more)
    return started


def test_money_that_came_back_is_sent_anew_with_an_approval_of_its_own(desk: Desk, world: World) -> None:
    """C06, M15, C03: blocked until a person picks the route; then a new operation, approved although it is small."""
    order, task, case = came_back(desk, world)
    task.refresh_from_db()
    assert (task.status, task.attention) == ("completed", "RETURNED")
    waiting = world.ask(order, 700)
    desk.parked(waiting)
    follow_up = _start(desk, desk.olga, case)
    case.refresh_from_db()
    assert (case.state, case.outcome, follow_up.requester) == ("closed", "compensated", desk.olga)
    asked = world.approval(follow_up)
    assert world.effects(order) == [] or [r["amount_minor"] for r in world.effects(order)] == [700]
    world.decide(world.ada, asked)
    world.finish(follow_up, waiting)
    assert (follow_up.status, waiting.status) == ("completed", "completed")
    assert sorted(r["amount_minor"] for r in world.effects(order)) == [700, 1000]
    task.refresh_from_db()
    assert (task.status, task.attention) == ("completed", None)
    assert world.operation(follow_up).id != world.operation(task).id
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 1700


def test_who_starts_a_follow_up_does_not_approve_it(desk: Desk, world: World) -> None:
    """I10."""
    _, _, case = came_back(desk, world)
    members.add_person(world.amber, "olga", None, ["approver"])
    access.forget(desk.olga)
    asked = world.approval(_start(desk, desk.olga, case))
    with pytest.raises(Forbidden):
        world.decide(desk.olga, asked)


def test_a_follow_up_is_at_most_what_the_first_one_was(desk: Desk, world: World) -> None:
    _, _, case = came_back(desk, world)
    for amount in (1001, 0, -1, True, "10"):
        with pytest.raises(FieldErrors):
            _start(desk, desk.olga, case, amount)  # type: ignore[arg-type]
    case.refresh_from_db()
    assert case.state == "open" and not Task.objects.filter(request_key__startswith="follow-up").exists()


def test_a_case_makes_one_follow_up(desk: Desk, world: World) -> None:
    """M02: however often it is pressed, and whoever presses it."""
    _, _, case = came_back(desk, world)
    saw = desk.see(desk.olga, case)
    _start(desk, desk.olga, case)
    with pytest.raises(Conflict):
        _start(desk, desk.olga, case, saw=saw)
    with pytest.raises(Conflict, match="asked for already"):
        _start(desk, desk.otto, case)
    assert Task.objects.filter(request_key__startswith="follow-up").count() == 1


def test_a_follow_up_that_was_decided_and_not_stored_is_finished(
    desk: Desk, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M13: the process dies between the decision and the request; the same call finishes it with the same amount."""
    _, _, case = came_back(desk, world)

    def dies(*args: Any, **given: Any) -> Any:
        raise SystemExit

    with monkeypatch.context() as broken:
        broken.setattr(tasks, "create", dies)
        with pytest.raises(SystemExit):
            _start(desk, desk.olga, case, 900)
    assert desk.see(desk.olga, case).follow_up is None
    assert "olga has begun" in desk.why(desk.otto, case, "start_compensation")
    assert desk.why(desk.olga, case, "start_compensation") == ""
    finished = _start(desk, desk.olga, case, 900)
    assert (finished.amount_minor, desk.see(desk.otto, case).follow_up) == (900, finished)
    assert desk.entries(case).count("compensated") == 1


def test_another_route_ends_the_choice(desk: Desk, world: World) -> None:
    order, task, case = came_back(desk, world)
    waiting = world.ask(order, 700)
    desk.parked(waiting)
    desk.do(verbs.close, desk.olga, case, outcome="paid_otherwise", reason="Paid from the till.")
    assert "Another route" in desk.why(desk.olga, case, "start_compensation")
    world.finish(waiting)
    task.refresh_from_db()
    assert (waiting.status, task.attention) == ("completed", None)
    closed = world.said(task, "case.closed")
    assert closed["what"] == "paid_otherwise" and closed["why"].endswith("Paid from the till.")


def test_what_was_declared_not_executed_may_be_asked_for_anew(desk: Desk, world: World) -> None:
    """Row 18: a new superseding operation, with a new approval and under a new key."""
    order, task, case = desk.absent()
    desk.do(verbs.declare_not_executed, desk.olga, case, **ABSENT)
    assert "proved that nothing arrived" in desk.why(desk.olga, case, "start_compensation")
    desk.do(verbs.declare_not_executed, desk.otto, case, **ABSENT)
    follow_up = _start(desk, desk.otto, case)
    world.decide(world.abel, world.approval(follow_up))
    world.finish(follow_up)
    assert follow_up.status == "completed" and [r["amount_minor"] for r in world.effects(order)] == [1000]
    keys = {world.operation(t).idempotency_key for t in (task, follow_up)}
    assert len(keys) == 2 and "case.decided" in world.events(task)


def test_who_asked_for_the_refund_starts_no_follow_up_of_it(desk: Desk, world: World) -> None:
    _, _, case = came_back(desk, world)
    members.add_person(world.amber, "rita", None, ["operator"])
    access.forget(world.rita)
    with pytest.raises(Forbidden):
        _start(desk, world.rita, case)
