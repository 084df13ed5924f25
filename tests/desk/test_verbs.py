"""The smaller verbs: asking, acknowledging, closing, giving away, putting away, writing down."""

from __future__ import annotations

from datetime import date, timedelta
from uuid import uuid4

import pytest

from runtime_app import access, looks, members, tasks, watch
from runtime_app.desk import outcomes, reading, verbs
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound
from runtime_app.ledger.looks import ask as ask_payment
from runtime_app.models import Case, PaymentLook
from runtime_app.reconciliation.classes import CLASSES
from tests.desk.conftest import Desk
from tests.desk.test_follow_up import came_back
from tests.world import PASSWORD, World


def _outside(desk: Desk, world: World) -> tuple[str, Case]:
    """C10, F33: somebody refunded 40.00 in the provider's dashboard."""
    order = world.order()
    world.finish(world.ask(order, 1000))
    world.sandbox.fault("F33", match={"payment_ref": f"pi_{order}"}, amount_minor=4000)
    ask_payment(world.amber.id, "stripe", f"pi_{order}", "a test")

    def found() -> Case | None:
        looks.work(world.ports(), actor="worker:in-test")
        return Case.objects.filter(payment_ref=f"pi_{order}", class_name="EXTERNAL_REFUND").first()

    return order, world.until(found)


def test_an_outside_refund_is_acknowledged_and_the_payment_goes_on(desk: Desk, world: World) -> None:
    """C10: it consumes what may still be refunded, and what was parked for the case goes on by itself."""
    order, case = _outside(desk, world)
    waiting = world.ask(order, 2000)
    desk.parked(waiting)
    s = desk.see(desk.olga, case)
    assert s.balance is not None and s.balance.remaining_minor == 3000 and s.operation is None
    assert desk.offer(desk.olga, case, "close").why == "It is closed by acknowledging it."
    closed = desk.do(verbs.acknowledge, desk.olga, case, reason="Support paid it back by hand.")
    assert (closed.state, closed.outcome) == ("closed", "acknowledged")
    assert desk.entries(case) == ["acknowledged", "closed"]
    world.finish(waiting)
    assert waiting.status == "completed"
    looks.work(world.ports(), actor="worker:in-test")
    assert Case.objects.filter(payment_ref=f"pi_{order}", state="open").count() == 0


def test_asking_about_a_payment_or_a_proved_refund_has_a_worker_look(desk: Desk, world: World) -> None:
    """M24: what is not in doubt is looked at beside its task."""
    _, case = _outside(desk, world)
    desk.do(verbs.query_now, desk.olga, case)
    assert PaymentLook.objects.get(payment_ref=case.payment_ref).due_at is not None
    order, task, back = came_back(desk, world)
    desk.do(verbs.query_now, desk.olga, back)
    assert PaymentLook.objects.get(payment_ref=f"pi_{order}").why == "a person asked for it"
    assert world.operation(task).state == "returned" and desk.entries(back) == ["asked"]


def test_asking_brings_the_answer_into_the_case(desk: Desk, world: World) -> None:
    world.retime(reconcile_every=7 * 86400)
    _, task, case = desk.absent()
    before = world.operation(task).checks
    desk.do(verbs.query_now, desk.olga, case)
    s = desk.answered(case)
    assert world.operation(task).checks == before + 1
    assert s.entries[-1].data == {"says": "absent", "refunds": []}
    task.refresh_from_db()
    assert task.status == "reconciling"


def test_a_hint_does_not_outlive_the_proof(desk: Desk, world: World) -> None:
    """A late case's operation is looked at by the watch, and nothing changes when nothing is new."""
    _, task, case = desk.absent()
    for person in (desk.olga, desk.otto):
        desk.do(verbs.declare_not_executed, person, case, code="absent_everywhere", reason="Nothing.")
    events = world.events(task)
    assert watch.hint(world.operation(task).id)
    watch.watch(world.ports(), actor="worker:in-test")
    assert world.events(task) == events


def test_a_case_is_closed_with_a_word_of_its_class_and_a_reason(desk: Desk, world: World) -> None:
    _, task, case = came_back(desk, world)
    for outcome, reason, field in (
        ("recovered", "x", "outcome"), ("compensated", "x", "outcome"), (None, "x", "outcome"),
        ("written_off", "  ", "reason"), ("written_off", "x" * 501, "reason"), ("written_off", "\u202e", "reason"),
    ):
        with pytest.raises(FieldErrors) as refused:
            desk.do(verbs.close, desk.olga, case, outcome=outcome, reason=reason)
        assert list(refused.value.errors) == [field]
    closed = desk.do(verbs.close, desk.olga, case, outcome="written_off", reason="Agreed with the customer.")
    assert (closed.state, closed.closed_by) == ("closed", access.actor(desk.olga))
    last = closed.entries.get(kind="closed")
    assert (last.data["outcome"], last.data["reason"]) == ("written_off", "Agreed with the customer.")
    assert len(last.evidence_sha256) == 64
    task.refresh_from_db()
    assert task.attention is None and world.events(task)[-1] == "case.closed"
    with pytest.raises(Conflict, match="closed"):
        desk.do(verbs.close, desk.olga, case, outcome="written_off", reason="Again.")


def test_what_closes_by_proof_is_not_closed_by_a_word(desk: Desk) -> None:
    """I9: an outcome in doubt keeps its case."""
    _, _, case = desk.absent()
    with pytest.raises(Conflict, match="closes by itself"):
        desk.do(verbs.close, desk.olga, case, outcome="settled", reason="Enough of it.")


def test_every_class_has_words_that_are_told(desk: Desk) -> None:
    for name in CLASSES:
        assert all(outcomes.says(name, word) == says and word in outcomes.WORDS
                   for word, says in outcomes.of(name).items())
        assert bool(outcomes.of(name)) or name == "EXTERNAL_REFUND"
    assert all(len(word) <= 40 for word in outcomes.WORDS)


def test_a_stale_page_is_told_what_changed(desk: Desk, world: World) -> None:
    """Console 3: a revision and the evidence's digest; 409 in words, and nothing recorded."""
    _, _, case = came_back(desk, world)
    saw = desk.see(desk.olga, case)
    desk.do(verbs.comment, desk.otto, case, text="I am on it.")
    with pytest.raises(Conflict, match=r"Otto Lake wrote a comment while you were looking; nothing was recorded\."):
        desk.do(verbs.close, desk.olga, case, saw=saw, outcome="written_off", reason="x")
    assert desk.entries(case) == ["commented"]
    for revision in (0, -1, True, "1", 2**31, None):
        with pytest.raises(FieldErrors):
            verbs.comment(desk.olga, case.id, revision=revision, seen_sha256="", text="x")  # type: ignore[arg-type]
    for digest in ("", "x" * 64, "A" * 64, None):
        with pytest.raises(FieldErrors):
            verbs.query_now(desk.olga, case.id, revision=saw.case.revision, seen_sha256=digest)  # type: ignore[arg-type]
    with pytest.raises(Conflict):
        verbs.query_now(desk.olga, case.id, revision=desk.see(desk.olga, case).case.revision, seen_sha256="0" * 64)


def test_a_double_click_does_it_once(desk: Desk, world: World) -> None:
    """Console 1."""
    _, _, case = came_back(desk, world)
    saw = desk.see(desk.olga, case)
    desk.do(verbs.comment, desk.olga, case, saw=saw, text="Called the bank.")
    with pytest.raises(Conflict):
        desk.do(verbs.comment, desk.olga, case, saw=saw, text="Called the bank.")
    assert desk.entries(case) == ["commented"]


def test_a_case_is_given_to_somebody_who_may_work_it(desk: Desk, world: World) -> None:
    """M40: not to one who only sees, is of another tenant, has left, or asked for the refund."""
    _, _, case = came_back(desk, world)
    assert desk.do(verbs.assign, desk.olga, case, to="otto").owner == desk.otto
    members.add_person(world.amber, "rita", None, ["operator"])
    gone = members.add_person(world.amber, "gone", PASSWORD, ["operator"])
    gone.is_active = False
    gone.save(update_fields=["is_active"])
    for name in ("sam", "bea", "gone", "rita", "nobody", "", 7):
        with pytest.raises(FieldErrors):
            desk.do(verbs.assign, desk.olga, case, to=name)
    assert [p.username for p in reading.workers(world.amber.id)] == ["olga", "otto", "rita"]
    assert desk.do(verbs.assign, desk.otto, case, to=None).owner is None
    assert [e.data for e in desk.see(desk.olga, case).entries] == [{"to": "otto"}, {"to": None}]


def test_a_case_is_put_away_for_thirty_days_at_most(desk: Desk, world: World) -> None:
    _, _, case = came_back(desk, world)
    today = desk.see(desk.olga, case).now.date()
    for until in (today - timedelta(days=1), today, today + timedelta(days=31), date.max, "2026-01-01"):
        with pytest.raises(FieldErrors):
            desk.do(verbs.snooze, desk.olga, case, until=until)
    deadline = case.deadline_at
    put_away = desk.do(verbs.snooze, desk.olga, case, until=today + timedelta(days=30))
    assert put_away.snoozed_until is not None and desk.see(desk.olga, case).snoozed and put_away.deadline_at == deadline
    assert not desk.see(desk.olga, case).overdue
    assert desk.do(verbs.snooze, desk.olga, case, until=None).snoozed_until is None
    world.clock(days=2)
    assert desk.see(desk.olga, case).overdue and desk.see(desk.olga, case).open


def test_a_comment_is_text_and_stays_possible_on_a_closed_case(desk: Desk, world: World) -> None:
    _, _, case = came_back(desk, world)
    for text in ("", "  ", "x" * 2001, "\x00"):
        with pytest.raises(FieldErrors):
            desk.do(verbs.comment, desk.olga, case, text=text)
    desk.do(verbs.close, desk.olga, case, outcome="written_off", reason="Agreed.")
    desk.do(verbs.comment, desk.otto, case, text="The customer called again.")
    assert desk.entries(case) == ["closed", "commented"]
    with pytest.raises(Conflict, match="This case is closed"):
        desk.do(verbs.assign, desk.olga, case, to="otto")


def test_strangers_and_unknown_cases_give_one_answer(desk: Desk, world: World) -> None:
    """M06: every verb, for a person of another tenant who may do everything there."""
    _, _, case = came_back(desk, world)
    shown = {"revision": 1, "seen_sha256": "0" * 64}
    given: dict[str, dict[str, object]] = {
        "query_now": {}, "attach": {"ref": "re_1"}, "record_as_found": {"code": "provider_confirms", "reason": "x"},
        "acknowledge": {"reason": "x"}, "declare_not_executed": {"code": "provider_denies", "reason": "x"},
        "cancel_at_provider": {"reason": "x"}, "start_compensation": {"amount_minor": 1, "reason": "x"},
        "close": {"outcome": "written_off", "reason": "x"}, "assign": {"to": None}, "snooze": {"until": None},
        "comment": {"text": "x"},
    }
    for name, values in given.items():
        for id in (case.id, uuid4(), "nothing"):
            with pytest.raises(NotFound):
                getattr(verbs, name)(world.bea, id, **shown, **values)
        with pytest.raises(Forbidden):
            getattr(verbs, name)(world.ava, case.id, **shown, **values)
    assert not reading.cases(world.bea).exists() and reading.cases(world.ava).get() == case
    with pytest.raises(NotFound):
        verbs.export_noted(world.bea, case.id, sha256="0" * 64)
    verbs.export_noted(world.ava, case.id, sha256="0" * 64)
    assert desk.entries(case) == ["exported"]


def test_only_who_works_cases_asks_for_a_follow_up_at_the_engine_too(desk: Desk, world: World) -> None:
    """M06: `follows` opens no second door to asking for refunds."""
    order, task, _ = came_back(desk, world)
    request = tasks.Request("refund", order, amount_minor=100, currency="USD")
    with pytest.raises(Forbidden):
        tasks.create(world.rita, world.amber, request, request_key="mine", follows=task.id)
    with pytest.raises(Forbidden):
        tasks.create(desk.olga, world.amber, request, request_key="mine")
