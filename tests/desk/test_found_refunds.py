"""Refunds that the provider shows otherwise than we asked: named by a person, or accepted as they are by two."""

from __future__ import annotations

import pytest

from runtime_app import invariants, looks, tasks
from runtime_app.desk import verbs
from runtime_app.errors import FieldErrors, Forbidden
from runtime_app.models import Balance, Case, Hold, Intent, Task
from tests.desk.conftest import Desk
from tests.world import World

FOUND = {"code": "statement_shows", "reason": "It is on the statement."}


def _nameless(desk: Desk, world: World) -> tuple[str, Task, Case]:
    """F31 and F4: made, the answer lost, its mark lost as well, and this account may not read events."""
    world.retime(reconcile_after=[0.1], reconcile_every=60)
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F31", times=1, match={"payment_ref": f"pi_{order}"})
    world.sandbox.fault("F4", times=1, match={"payment_ref": f"pi_{order}"})
    world.sandbox.fault("F18", on="events", status=403, times=100)
    return order, task, desk.case(task, "LOOKALIKES")


def test_a_refund_that_lost_its_mark_counts_when_a_person_names_it(desk: Desk, world: World) -> None:
    """F31, row 9: nothing is matched by amount alone; named, looked at, and then proved by the provider itself."""
    order, task, case = _nameless(desk, world)
    ref = world.effects(order)[0]["id"]
    assert "lookalikes" in {e.finding for e in desk.see(desk.olga, case).evidence}
    assert [shown.ref for shown in desk.see(desk.olga, case).shown] == [ref]
    desk.do(verbs.attach, desk.olga, case, ref=ref)
    assert "still being looked at" in desk.why(desk.olga, case, "attach")
    world.finish(task)
    case.refresh_from_db()
    assert (task.status, case.state, case.outcome) == ("completed", "closed", "succeeded")
    assert world.operation(task).provider_ref == ref and len(world.effects(order)) == 1
    assert sorted(desk.entries(case)) == ["answered", "asked", "closed"]


def test_a_named_refund_that_does_not_fit_changes_nothing(desk: Desk, world: World) -> None:
    """Never a success without the provider's own word: another amount, another operation's, or none at all."""
    _order, task, case = _nameless(desk, world)
    other = world.order()
    done = world.ask(other, 1000)
    world.finish(done)
    for ref in (str(world.effects(other)[0]["id"]), "re_nobody_knows"):
        desk.do(verbs.attach, desk.olga, case, ref=ref)
        assert desk.answered(case).entries[-1].data["says"].startswith(("This refund", "The provider has no"))
    task.refresh_from_db()
    assert task.status == "reconciling" and world.operation(task).provider_ref is None
    with pytest.raises(FieldErrors):
        desk.do(verbs.attach, desk.olga, case, ref="two words")


def _another_amount(desk: Desk, world: World, amount: int) -> tuple[str, Task, Case]:
    """F29: the provider made it with another amount."""
    order = world.order()
    world.sandbox.fault("F29", times=1, match={"payment_ref": f"pi_{order}"}, amount_minor=amount)
    task = world.ask(order, 1000)
    return order, task, desk.case(task, "AMOUNT_MISMATCH")


def _record(desk: Desk, case: Case) -> None:
    desk.do(verbs.query_now, desk.olga, case)
    desk.answered(case)
    desk.do(verbs.record_as_found, desk.olga, case, **FOUND)
    desk.do(verbs.record_as_found, desk.otto, case, **FOUND)


@pytest.mark.parametrize("amount", [700, 1400])
def test_two_people_accept_the_amount_that_was_refunded(desk: Desk, world: World, amount: int) -> None:
    """F29, row 7: completed with a mark; hold and balance follow the real amount, and the order system is told it."""
    order, task, case = _another_amount(desk, world, amount)
    assert "ask the provider now" in desk.why(desk.olga, case, "record_as_found")
    _record(desk, case)
    task.refresh_from_db()
    case.refresh_from_db()
    assert (task.status, task.attention) == ("completed", "AMOUNT_MISMATCH")
    assert (case.state, case.outcome) == ("closed", "recorded_as_found")
    operation = world.operation(task)
    assert (operation.state, operation.provider_ref) == ("succeeded", world.effects(order)[0]["id"])
    assert operation.amount_minor == 1000  # what was asked for is never edited
    assert sorted(Hold.objects.filter(task=task).values_list("state", "amount_minor")) == [
        ("consumed", amount), ("released", 1000)
    ]
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.reserved_minor, balance.refunded_minor, balance.excess_minor) == (0, amount, 0)
    evidence = operation.resolved_by
    assert evidence is not None and evidence.body is not None and evidence.body["amount_minor"] == amount
    sent = world.sandbox.requests(operation_id=str(operation.id))
    assert not invariants.check(world.sandbox.refunds(f"pi_{order}"), requests=sent)
    assert Intent.objects.get(payload__operation_id=str(operation.id)).payload["amount_minor"] == amount


def test_more_than_may_be_refunded_is_recorded_as_excess(desk: Desk, world: World) -> None:
    """I1: what happened is recorded also where it could not have been allowed; what no longer fits is refused."""
    order, _, case = _another_amount(desk, world, 9000)
    second = world.ask(order, 2000)
    world.until(lambda: Hold.objects.filter(task=second).exists())
    _record(desk, case)
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.refunded_minor, balance.reserved_minor, balance.excess_minor) == (9000, 2000, 1000)
    world.finish(second)
    assert second.status == "failed" and sum(r["amount_minor"] for r in world.effects(order)) == 9000


def test_recording_takes_two_people_who_did_not_ask(desk: Desk, world: World) -> None:
    _, task, case = _another_amount(desk, world, 700)
    desk.do(verbs.query_now, desk.olga, case)
    desk.answered(case)
    desk.do(verbs.record_as_found, desk.olga, case, **FOUND)
    with pytest.raises(Forbidden, match="second person"):
        desk.do(verbs.record_as_found, desk.olga, case, **FOUND)
    with pytest.raises(FieldErrors):
        desk.do(verbs.record_as_found, desk.otto, case, code="provider_denies", reason="x")
    task.refresh_from_db()
    assert task.status == "reconciling"


def test_another_currency_counts_nowhere_on_this_payment(desk: Desk, world: World) -> None:
    """I11, row 7: it happened, and no amount of another currency is ever added to the balance."""
    order = world.order()
    world.sandbox.fault("F29", times=1, match={"payment_ref": f"pi_{order}"}, currency="eur")
    task = world.ask(order, 1000)
    case = desk.case(task, "CURRENCY_MISMATCH")
    assert desk.why(desk.olga, case, "declare_not_executed")
    _record(desk, case)
    task.refresh_from_db()
    assert (task.status, task.attention) == ("completed", "CURRENCY_MISMATCH")
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.reserved_minor, balance.refunded_minor) == (0, 0)


def test_what_moved_on_another_payment_is_found_there(desk: Desk, world: World) -> None:
    """F30, row 7: the money of this payment did not move, and that of the other one has a case of its own."""
    order, other = world.order(), world.order()
    world.finish(world.ask(other, 100))
    world.sandbox.fault("F30", times=1, match={"payment_ref": f"pi_{order}"}, payment_ref=f"pi_{other}")
    task = world.ask(order, 1000)
    case = desk.case(task, "PARENT_MISMATCH")
    _record(desk, case)
    task.refresh_from_db()
    assert (task.status, task.attention) == ("completed", "PARENT_MISMATCH")
    assert Balance.objects.get(payment_ref=f"pi_{order}").refunded_minor == 0
    world.until(lambda: looks.work(world.ports(), actor="worker:in-test"))
    found = Case.objects.get(class_name="EXTERNAL_REFUND", payment_ref=f"pi_{other}")
    assert (found.amount_minor, found.state) == (1000, "open")
    assert Balance.objects.get(payment_ref=f"pi_{other}").external_provider_minor == 1000


def test_looking_again_at_the_same_mismatch_keeps_the_digest(desk: Desk, world: World) -> None:
    _, _, case = _another_amount(desk, world, 700)
    digests = set()
    for _ in range(2):
        desk.do(verbs.query_now, desk.olga, case)
        digests.add(desk.answered(case).evidence_sha256)
    assert len(digests) == 1


def test_a_wish_to_cancel_reaches_the_provider_through_the_desk(desk: Desk, world: World) -> None:
    """Rows 4 and 5, F22: pending for too long, cancellable; asked by Olga, cancelled there, and proved by a look."""
    world.retime(pending_sla=0.2)
    order = world.order()
    world.sandbox.fault("F22", times=1, match={"payment_ref": f"pi_{order}"}, seconds=30 * 86400)
    task = world.ask(order, 1000)
    case = desk.case(task, "STALE_PENDING")
    assert desk.why(desk.olga, case, "cancel_at_provider") == ""
    desk.do(verbs.cancel_at_provider, desk.olga, case, reason="The customer took a voucher.")
    assert "wished for already" in desk.why(desk.otto, case, "cancel_at_provider")
    world.finish(task)
    case.refresh_from_db()
    assert (task.status, case.state, case.outcome) == ("cancelled", "closed", "failed")
    assert world.effects(order) == [] and "operation.cancel_submitted" in world.events(task)


def test_what_is_being_settled_cannot_be_cancelled_there(desk: Desk, world: World) -> None:
    world.retime(pending_sla=0.2)
    order = world.order()
    world.sandbox.fault("F21", times=1, match={"payment_ref": f"pi_{order}"}, seconds=30 * 86400, then="succeeded")
    task = world.ask(order, 1000)
    case = desk.case(task, "STALE_PENDING")
    why = desk.why(desk.olga, case, "cancel_at_provider")
    assert why == "The provider can only cancel what is requires_action; this one is pending."
    tasks.cancel(world.rita, task.id, reason="wished all the same")
