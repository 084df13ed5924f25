"""The decision's page: the rules with people and votes, every state in words, and what is done besides deciding."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import verbs
from approvals.models import Approval, Decision, Delivery, Note, Snooze
from runtime_app import members, rows, tasks
from runtime_app.models import User
from tests.approvals.test_policies import in_force, review, rules, team
from tests.console.conftest import Inputs, Visitor
from tests.world import PASSWORD, World

Visit = Callable[[User | None], Visitor]


def asked(world: World, amount: int = 6000, captured: int = 12_000) -> Approval:
    return world.approval(world.ask(world.order(captured), amount, reason="one item came back"))


def page_of(one: Approval) -> str:
    return f"/approvals/{one.id}/"


def signed_in(world: World) -> Visitor:
    """Ada, who has given her password at the sign-in."""
    ada = Visitor(None)
    hidden = Inputs(ada.text("/accounts/login/")).forms[""]
    answer = ada.send("/accounts/login/", {**hidden, "username": "ada", "password": PASSWORD})
    assert answer.status_code == 302
    return ada


def test_the_rules_are_told_with_their_people_and_votes(world: World, visit: Visit) -> None:
    """Issue point 8: reviews, who may, who has, how many are missing, order, deadline, escalation."""
    team(world, "risk", world.ada)
    in_force(world, rules(
        review("risk", teams=["risk"]), review("finance", people=["abel"]), order="in_order", remind=4, escalate=2,
        escalate_to={"people": ["ada"]}, password_above={"USD": 5000},
    ))
    one = asked(world)
    sam, page = visit(world.sam), page_of(one)
    text = sam.text(page)
    for said in ("team risk", "1 person is missing: Ada Stone", "Others come first", "one after another", "0 / 2",
                 "from then on also: Ada Stone", "asked for once more", "not Rita Moss", "50.0 %", "policy version 2"):
        assert said in text, said
    assert "The finance review is not open now" in visit(world.abel).text(page)
    world.decide(world.ada, one, password_at=rows.now())
    text = sam.text(page)
    assert "1 / 2" in text and "1 person is missing: Abel Reed" in text
    members.take_role(world.ada, world.amber, "approver")
    assert "no longer counts: the right is gone" in sam.text(page)


def test_what_happened_before_on_the_order_is_told(world: World, visit: Visit) -> None:
    """Console page 2: earlier refunds, with their sums, before somebody agrees to one more."""
    order = world.order(20_000)
    world.finish(world.ask(order, 3000))
    rejected = world.ask(order, 6000)
    world.decide(world.ada, world.approval(rejected), "reject", "no slip")
    one = world.approval(world.ask(order, 6100))
    text = visit(world.ada).text(page_of(one))
    assert text.count("1 refund, 30.00 USD") == 2 and "1 request on this order" in text
    assert "2 other requests in the 30 days before" in text


def test_an_amount_that_asks_for_the_password_gets_it_beside_the_form(world: World, visit: Visit) -> None:
    """S7: not given lately it is asked for, the reason is kept, a wrong one is said beside the field and recorded as
    nothing; afterwards it is not asked for again for a while."""
    in_force(world, rules(review(), password_above={"USD": 5000}))
    one, other = asked(world), asked(world, 7000)
    ada, page = visit(world.ada), page_of(one)
    assert "Your password, once more" in ada.text(page)
    hidden = ada.form(page)
    filled = {**hidden, "decision": "approve", "reason": "slip seen"}
    without = ada.send(page, filled)
    assert without.status_code == 422 and b"give your password once more" in without.content
    assert b"slip seen" in without.content
    wrong = ada.send(page, {**filled, "password": "not-hers"})
    assert wrong.status_code == 422 and b"This is not your password" in wrong.content
    assert b"not-hers" not in wrong.content
    assert not Decision.objects.exists()
    assert ada.send(page, {**filled, "password": PASSWORD}).status_code == 302
    again = ada.client.post(page, {**filled, "password": PASSWORD}, follow=True)
    assert b"It was recorded once" in again.content
    basis = Decision.objects.get().basis
    assert basis["password_at"] <= rows.now().isoformat() and PASSWORD not in str(basis)
    assert PASSWORD not in str(dict(ada.client.session.items()))
    assert "Your password, once more" not in ada.text(page_of(other))
    world.clock(seconds=world.timing.password_fresh + 1)
    assert "Your password, once more" in ada.text(page_of(other))


def test_the_sign_in_counts_as_giving_the_password_and_rejecting_needs_none(world: World, visit: Visit) -> None:
    """S7: by the database's clock; a session that was made otherwise does not count."""
    in_force(world, rules(review(), password_above={"USD": 5000}))
    one, other = asked(world), asked(world)
    ada = signed_in(world)
    assert "Your password, once more" not in ada.text(page_of(one))
    assert ada.send(page_of(one), {**ada.form(page_of(one)), "decision": "approve"}).status_code == 302
    abel = visit(world.abel)
    form = abel.form(page_of(other))
    assert abel.send(page_of(other), {**form, "decision": "reject", "reason": "no slip"}).status_code == 302


def test_too_many_wrong_passwords_end_the_session(world: World, visit: Visit) -> None:
    """S7: guessing is stopped, and nothing was recorded."""
    in_force(world, rules(review(), password_above={"USD": 5000}))
    one = asked(world)
    ada, page = visit(world.ada), page_of(one)
    filled = {**ada.form(page), "decision": "approve"}
    zero = ada.send(page, {**filled, "password": "\x00"})
    assert zero.status_code == 422 and b"Null characters" in zero.content
    guesses = ("a", "b" * 4096, "c", "\ufffd", "e")
    statuses = [ada.send(page, {**filled, "password": guess}).status_code for guess in guesses]
    assert statuses == [422, 422, 422, 422, 403] and ada.get(page).status_code == 302
    assert not Decision.objects.exists()


def test_an_open_page_is_told_what_has_changed(world: World, visit: Visit) -> None:
    """Console rule 6: a sentence with the newest question's address; the form itself is never swapped."""
    one = asked(world)
    ada = visit(world.ada)
    seen = ada.text(page_of(one)).split("/live/?seen=")[1].split('"')[0]
    live = f"/approvals/{one.id}/live/?seen={seen}"
    quiet = ada.get(live, hx_request="true")
    assert quiet.status_code == 200 and quiet.content.strip() == b""
    assert ada.get(live, hx_request="true", if_none_match=quiet["ETag"]).status_code == 304
    verbs.comment(world.abel, one.id, text="look twice")
    assert b"Something was added meanwhile" in ada.get(live, hx_request="true").content
    tasks.amend(world.rita, one.task_id, revision=one.task.revision, amount_minor=6600, reason=None)
    newest = world.approval(one.task)
    told = ada.get(live, hx_request="true", if_none_match=quiet["ETag"]).content.decode()
    assert "The facts have changed" in told and f"/approvals/{newest.id}/" in told
    assert ada.get(live)["Location"] == page_of(one), "opened by hand it leads to the page"
    world.decide(world.abel, newest)
    again = f"/approvals/{newest.id}/live/?seen=open.1.0.0"
    assert b"Abel Reed has decided this meanwhile" in ada.get(again, hx_request="true").content
    assert visit(world.bea).get(live, hx_request="true").status_code == 404


def test_ones_own_agreement_is_taken_back_while_others_are_missing(world: World, visit: Visit) -> None:
    """Issue point 4: not after all have agreed, and never another one's."""
    in_force(world, rules(review(quorum=2)))
    one = asked(world)
    ada, abel, page = visit(world.ada), visit(world.abel), page_of(one)
    ada.send(page, {**ada.form(page), "decision": "approve"})
    withdraw = f"/approvals/{one.id}/withdraw/"
    assert withdraw in ada.text(page) and withdraw not in abel.text(page)
    ada.send(withdraw, ada.form(page, withdraw))
    text = ada.text(page)
    assert "taken back" in text and "Approve: refund 60.00 USD" in text
    ada.send(page, {**ada.form(page), "decision": "approve"})
    form = ada.form(page, withdraw)
    abel.send(page, {**abel.form(page), "decision": "approve"})
    late = ada.send(withdraw, form)
    assert late.status_code == 409 and Decision.objects.filter(withdrawn_at=None).count() == 2


def test_comments_void_nothing_and_everybody_sees_them(world: World, visit: Visit) -> None:
    """Issue point 2: the same page that was open before still decides; too long or empty is said beside the field."""
    one = asked(world)
    ada, sam, page = visit(world.ada), visit(world.sam), page_of(one)
    action = f"/approvals/{one.id}/comment/"
    decision = ada.form(page)
    form = sam.form(page, action)
    assert sam.send(action, {**form, "text": "The <b>shop</b> confirms.\nTwice."}).status_code == 302
    for text, sentence in (("", b"Write something"), ("x" * 2001, b"at most 2000"), ("\x00", b"Leave out control")):
        refused = sam.send(action, {**form, "text": text})
        assert refused.status_code == 422 and sentence in refused.content, text
    assert "The &lt;b&gt;shop&lt;/b&gt; confirms.<br>Twice." in ada.text(page)
    assert ada.send(page, {**decision, "decision": "approve"}).status_code == 302
    assert sam.send(action, {**form, "text": "late"}).status_code == 409 and Note.objects.count() == 1


def test_it_is_handed_over_to_somebody_who_may_decide(world: World, visit: Visit) -> None:
    """Issue point 4: the choice has only those, and a made-up one is refused beside the field."""
    one = asked(world)
    ada, page = visit(world.ada), page_of(one)
    action = f"/approvals/{one.id}/over/"
    text = ada.text(page)
    assert '<option value="abel">' in text and 'value="sam"' not in text and 'value="rita"' not in text
    form = ada.form(page, action)
    for name in ("sam", "rita", "ada", "bea", "", "abel\x00", "a" * 151):
        refused = ada.send(action, {**form, "over-to": name})
        said = b"Leave out control" if "\x00" in name else b"at most 150" if len(name) > 150 else b"Name somebody else"
        assert refused.status_code == 422 and said in refused.content, name
    ada.send(action, {**form, "over-to": "abel", "over-text": "you know the shop"})
    assert "in the hand of Abel Reed" in ada.text(page) and "you know the shop" in visit(world.abel).text(page)
    assert Approval.objects.get().claimed_by == world.abel
    assert ada.send(f"/approvals/{one.id}/claim/", form).status_code == 409
    assert ada.send(page, {**ada.form(page), "decision": "approve"}).status_code == 302, "others may still decide"


def test_who_was_told_and_what_became_of_it_is_shown(world: World, visit: Visit) -> None:
    """Issue point 6: each delivery is visible, with its last error in words and nothing of it as markup."""
    one = asked(world)
    for what, state, error in (("asked", "sent", ""), ("reminder", "dead", "<i>no such mailbox</i>")):
        Delivery.objects.create(tenant=world.amber, approval=one, what=what, person=world.ada, state=state, tries=3,
                                dedup_key=f"test-{what}", last_error=error)
    text = visit(world.sam).text(page_of(one))
    assert "asked to decide" in text and "Given up" in text and "3 tries" in text
    assert "&lt;i&gt;no such mailbox" in text and "<i>no" not in text


def test_it_is_put_away_for_a_named_time_only(world: World, visit: Visit) -> None:
    one = asked(world)
    ada, page = visit(world.ada), page_of(one)
    action = f"/approvals/{one.id}/snooze/"
    form = ada.form(page, action)
    answer = ada.client.post(action, {**form, "snooze-until": "2099-01-01"}, follow=True)
    assert "Choose one of the times" in answer.content.decode() and not Snooze.objects.exists()
    ada.send(action, {**form, "snooze-until": "four"})
    assert timedelta(hours=3) < Snooze.objects.get().until - rows.now() < timedelta(hours=5)
    wake = f"/approvals/{one.id}/wake/"
    ada.send(wake, ada.form(page, wake))
    assert not Snooze.objects.exists()


def test_the_loser_of_changed_facts_is_led_to_the_newest_question(world: World, visit: Visit) -> None:
    """M20, lessons 4 and 9: the same facts asked anew keep nothing of the old form; a new question has its own."""
    one = asked(world)
    ada, page = visit(world.ada), page_of(one)
    form = ada.form(page)
    tasks.amend(world.rita, one.task_id, revision=one.task.revision, amount_minor=6600, reason=None)
    newest = world.approval(one.task)
    lost = ada.send(page, {**form, "decision": "approve"})
    assert lost.status_code == 409 and f"/approvals/{newest.id}/" in lost.content.decode()
    other = {**form, "approval": str(newest.id)}
    assert ada.send(page_of(newest), {**other, "decision": "approve"}).status_code == 409
    assert not Decision.objects.exists()


def test_an_answer_just_before_the_timeout_stands_and_one_after_it_is_refused(world: World, visit: Visit) -> None:
    """Lesson 15, C16: judged by the database's clock; the sweep that comes later does not touch what was decided."""
    one, other = asked(world), asked(world)
    ada = visit(world.ada)
    form, late = ada.form(page_of(one)), ada.form(page_of(other))
    world.clock(seconds=(one.deadline_at - rows.now()).total_seconds() - 20)
    assert ada.send(page_of(one), {**form, "decision": "approve"}).status_code == 302
    world.clock(seconds=60)
    refused = ada.send(page_of(other), {**late, "decision": "approve"})
    assert refused.status_code == 409 and b"Too late" in refused.content
    world.finish(one.task, other.task)
    assert (one.task.status, other.task.status) == ("completed", "rejected")


def test_the_page_asks_as_much_for_many_votes_as_for_few(world: World, visit: Visit) -> None:
    """Lesson 28: with notes and people, no question for each."""
    in_force(world, rules(review(quorum=2)))
    one = asked(world)
    sam = visit(world.sam)
    counts = []
    for n in range(2):
        with CaptureQueriesContext(connection) as queries:
            sam.text(page_of(one))
        counts.append(len(queries))
        if not n:
            for text in ("one", "two", "three"):
                verbs.comment(world.abel, one.id, text=text)
            world.decide(world.ada, one)
    assert counts[1] <= counts[0] + 1 and max(counts) <= 45, counts
