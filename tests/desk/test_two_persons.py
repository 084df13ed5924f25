"""Declaring that a refund never happened takes two people, the same evidence, and nobody who may still send it."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_app import access, members, tasks, watch
from runtime_app.desk import actions, verbs
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound
from runtime_app.models import Balance, Case, Hold
from runtime_app.senders import SenderLocks
from tests.desk.conftest import Desk
from tests.world import World

ABSENT = {"code": "absent_everywhere", "reason": "Lists and statements show nothing."}


def _declare(desk: Desk, person: Any, case: Case, **changes: Any) -> Case:
    declared: Case = desk.do(verbs.declare_not_executed, person, case, **{**ABSENT, **changes})
    return declared


def test_two_people_end_what_is_absent_for_good(desk: Desk, world: World) -> None:
    """Row 18, I10, I7, M24: nothing held, failed, and the evidence names both people and why."""
    order, task, case = desk.absent()
    desk.do(verbs.query_now, desk.olga, case)
    desk.answered(case)
    _declare(desk, desk.olga, case)
    task.refresh_from_db()
    assert task.status == "reconciling" and desk.entries(case)[-1] == "declared"
    closed = _declare(desk, desk.otto, case, reason="I looked as well.")
    task.refresh_from_db()
    assert (task.status, task.attention, closed.state, closed.outcome) == ("failed", None, "closed", "not_executed")
    operation = world.operation(task)
    assert operation.state == "not_executed" and operation.next_check_at is not None
    evidence = operation.resolved_by
    assert evidence is not None and evidence.kind == "human_attestation" and evidence.body is not None
    assert [p["person"] for p in evidence.body["people"]] == ["olga", "otto"]
    assert [p["reason"] for p in evidence.body["people"]] == [ABSENT["reason"], "I looked as well."]
    assert Hold.objects.get(task=task).state == "released"
    assert Balance.objects.get(payment_ref=f"pi_{order}").reserved_minor == 0
    assert world.events(task)[-5:] == [
        "case.decided", "operation.not_executed", "hold.released", "case.closed", "task.failed"
    ]
    assert world.effects(order) == []


def test_the_same_person_twice_is_one_person(desk: Desk) -> None:
    """I10."""
    _, task, case = desk.absent()
    _declare(desk, desk.olga, case)
    with pytest.raises(Forbidden, match="a second person"):
        _declare(desk, desk.olga, case)
    task.refresh_from_db()
    assert task.status == "reconciling" and desk.entries(case) == ["declared"]


def test_both_rest_on_the_same(desk: Desk) -> None:
    _, _, case = desk.absent()
    _declare(desk, desk.olga, case)
    with pytest.raises(FieldErrors) as refused:
        _declare(desk, desk.otto, case, code="provider_denies")
    assert "Olga Brook chose" in refused.value.errors["code"]
    assert desk.offer(desk.otto, case, "declare_not_executed").second


def test_whoever_asked_for_the_refund_declares_nothing(desk: Desk, world: World) -> None:
    """I10: not even as an operator."""
    _, _, case = desk.absent()
    members.add_person(world.amber, "rita", None, ["operator"])
    access.forget(world.rita)
    with pytest.raises(Forbidden, match="You asked for this refund"):
        _declare(desk, world.rita, case)
    with pytest.raises(Forbidden):
        desk.do(verbs.close, world.rita, case, outcome="settled", reason="mine")


def test_who_only_sees_declares_nothing_and_a_stranger_sees_nothing(desk: Desk, world: World) -> None:
    """M06, M40: support and auditors see; Birch sees no such case."""
    _, _, case = desk.absent()
    for person in (world.sam, world.ava, world.tom):
        with pytest.raises(Forbidden):
            _declare(desk, person, case)
    saw = desk.see(desk.olga, case)
    for person in (world.bea, world.rita, world.ada):
        with pytest.raises(NotFound):
            desk.do(verbs.declare_not_executed, person, case, saw=saw, **ABSENT)


def test_nothing_is_declared_before_the_horizon(desk: Desk, world: World) -> None:
    """Row 18: the provider may still act on what was sent, and the page says until when."""
    world.retime(resend_most=0, max_in_flight=0.5)
    _, task = desk.lost()
    case = desk.case(task, "ABSENT_FINAL")
    offered = desk.offer(desk.olga, case, "declare_not_executed")
    saw = desk.see(desk.olga, case)
    assert not offered.allowed and offered.opens_at == saw.horizon_at and offered.opens_at is not None
    with pytest.raises(Conflict, match="may still act"):
        _declare(desk, desk.olga, case)
    world.clock(hours=2)
    assert "No complete look was made since" in desk.why(desk.olga, case, "declare_not_executed")
    desk.do(verbs.query_now, desk.olga, case)
    desk.answered(case)
    assert desk.offer(desk.olga, case, "declare_not_executed").allowed


def test_what_may_not_be_sent_again_since_the_order_changed_is_two_persons_at_the_horizon(
    desk: Desk, world: World
) -> None:
    """Rows 11 and 18: the key's window is open, but what was agreed to is no longer what the order says."""
    order, task = desk.lost()
    world.sandbox.patch_order(order, destination="another account")
    world.clock(hours=2)
    case = desk.case(task, "ABSENT_FINAL")
    assert desk.offer(desk.olga, case, "declare_not_executed").allowed
    assert "operation.resubmitted_same_key" not in world.events(task)


def test_an_order_system_that_is_away_makes_no_case_of_what_may_be_sent_again_later(desk: Desk, world: World) -> None:
    """Rows 10 and 11: that the order cannot be read says nothing about what was agreed to."""
    order, task = desk.lost()
    fault = world.sandbox.fault("F12", on="orders", times=None)
    world.clock(hours=2)
    world.until(lambda: world.operation(task).absents >= 4)
    assert not Case.objects.filter(task=task).exists() and world.effects(order) == []
    world.sandbox.clear_fault(fault["id"])
    world.clock(hours=2)
    world.finish(task)
    assert task.status == "completed" and len(world.effects(order)) == 1


def test_an_old_look_carries_no_decision(desk: Desk, world: World) -> None:
    world.retime(reconcile_every=7 * 86400)
    _, _, case = desk.absent()
    world.clock(minutes=20)
    assert "too old" in desk.why(desk.olga, case, "declare_not_executed")
    desk.do(verbs.query_now, desk.olga, case)
    desk.answered(case)
    assert desk.why(desk.olga, case, "declare_not_executed") == ""


def test_to_look_again_and_see_the_same_keeps_a_declaration(desk: Desk, world: World) -> None:
    """The digest is of what the evidence says, not of how often."""
    _, _, case = desk.absent()
    _declare(desk, desk.olga, case)
    before = desk.see(desk.otto, case)
    desk.do(verbs.query_now, desk.otto, case)
    after = desk.answered(case)
    assert len(after.evidence) > len(before.evidence) and after.evidence_sha256 == before.evidence_sha256
    assert after.declaration is not None and after.outdated is None
    assert _declare(desk, desk.otto, case).outcome == "not_executed"


def test_new_evidence_outdates_a_declaration(desk: Desk, world: World) -> None:
    """The refund appears behind the first declaration: the second person is told, and nothing is declared."""
    order, task, case = desk.absent()
    _declare(desk, desk.olga, case)
    saw = desk.see(desk.otto, case)
    world.sandbox.fault("F33", match={"payment_ref": f"pi_{order}"}, amount_minor=1000)
    desk.do(verbs.query_now, desk.otto, case)
    now = desk.answered(case)
    assert now.declaration is None and now.outdated is not None and now.outdated.person == desk.olga
    fresh = desk.see(desk.otto, case)
    assert fresh.last_complete is not None and fresh.last_complete.finding == "lookalikes"
    with pytest.raises(Conflict):
        desk.do(verbs.declare_not_executed, desk.otto, case, saw=saw, **ABSENT)
    _declare(desk, desk.otto, case)  # on the new evidence, Otto is the first
    task.refresh_from_db()
    assert task.status == "reconciling"


def test_a_first_person_who_lost_the_right_does_not_count(desk: Desk, world: World) -> None:
    """M21: authority is asked for when it is used."""
    _, task, case = desk.absent()
    _declare(desk, desk.olga, case)
    members.take_role(desk.olga, world.amber, "operator")
    saw = desk.see(desk.otto, case)
    assert saw.declaration is None and saw.outdated is not None
    _declare(desk, desk.otto, case)
    task.refresh_from_db()
    assert task.status == "reconciling"


def test_nothing_is_declared_while_a_sender_is_alive(desk: Desk) -> None:
    """Whoever may still send holds the operation's lock; a paused worker does too."""
    _, task, case = desk.absent()
    _declare(desk, desk.olga, case)
    sender = SenderLocks()
    operation = desk.world.operation(task)
    try:
        assert sender.take(operation.id)
        with pytest.raises(Conflict, match="A worker may be at the provider"):
            _declare(desk, desk.otto, case)
        task.refresh_from_db()
        assert task.status == "reconciling" and desk.entries(case) == ["declared"]
    finally:
        sender.close()
    assert _declare(desk, desk.otto, case).state == "closed"


def test_a_wished_cancel_ends_as_cancelled(desk: Desk, world: World) -> None:
    """M15, row 16 by people: with a lookalike in the list the table proves no absence by itself."""
    world.retime(resend_most=0)
    order, task = desk.lost()
    world.sandbox.fault("F33", match={"payment_ref": f"pi_{order}"}, amount_minor=1000)
    case = desk.case(task, "LOOKALIKES")
    tasks.cancel(world.rita, task.id, reason="asked twice")
    world.clock(hours=2)
    desk.do(verbs.query_now, desk.olga, case)
    desk.answered(case)
    _declare(desk, desk.olga, case)
    _declare(desk, desk.otto, case)
    task.refresh_from_db()
    assert task.status == "cancelled" and world.operation(task).state == "not_executed"


def test_what_lands_after_it_was_declared_is_found_and_shown(desk: Desk, world: World) -> None:
    """R19, row 23: people were wrong; the operation follows the money, the task keeps its end, a case says so."""
    world.retime(resend_most=0)
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F20", times=1, match={"payment_ref": f"pi_{order}"}, seconds=30 * 3600)
    world.until(lambda: "operation.unknown" in world.events(task))
    world.clock(hours=25)
    case = desk.case(task, "ABSENT_FINAL")
    _declare(desk, desk.olga, case)
    _declare(desk, desk.otto, case)
    world.sandbox.advance(31 * 3600)
    world.clock(days=2)

    def landed() -> bool:
        watch.watch(world.ports(), actor="worker:in-test")
        task.refresh_from_db()
        return task.attention is not None

    world.until(landed)
    assert (task.status, task.attention) == ("failed", "LATE_EXECUTION")
    assert world.operation(task).state == "succeeded" and len(world.effects(order)) == 1
    late = Case.objects.get(task=task, class_name="LATE_EXECUTION")
    assert "start_compensation" not in [o.name for o in _allowed(desk, late)]
    desk.do(verbs.close, desk.olga, late, outcome="accepted", reason="The customer keeps it.")
    task.refresh_from_db()
    assert task.attention is None and task.status == "failed"


def _allowed(desk: Desk, case: Case) -> list[Any]:
    return [o for o in actions.offers(desk.see(desk.olga, case), desk.olga) if o.allowed]
