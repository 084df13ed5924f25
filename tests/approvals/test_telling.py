"""People are told of approvals by mail: those who decide, and who asked; once each, and nothing after a decision."""

from __future__ import annotations

import smtplib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from approvals import absences, telling, verbs
from approvals.models import Approval, Decision, Delivery
from runtime_app import members, outbox, rows, tasks
from runtime_app.models import Intent, Task, User
from tests.approvals.telling import give_addresses, relay, send, states, tell, wish
from tests.approvals.test_policies import in_force, review, rules, team
from tests.world import World


@pytest.fixture(autouse=True)
def addresses(world: World) -> None:
    give_addresses(world)


def asked(world: World, amount: int = 6000, **more: Any) -> Approval:
    return world.approval(world.ask(world.order(), amount, **more))


def to() -> list[str]:
    return sorted(one.to[0].partition("@")[0] for one in mail.outbox)


def test_who_may_decide_is_told_and_nobody_else(world: World) -> None:
    """M20, lesson 12: not the requester, not who may only look, and never the people of another tenant."""
    approval = asked(world)
    tell(world)
    assert to() == ["abel", "ada"]
    [first, _] = mail.outbox
    assert first.subject == f"To decide: refund of 60.00 USD, order {approval.task.order_ref}"
    assert f"http://127.0.0.1:8000/approvals/{approval.id}/" in first.body
    assert "Europe/Berlin" in first.body and "UTC)" in first.body and "Rita" not in first.body
    assert Delivery.objects.filter(state="sent").count() == 2 and not outbox.is_anything_due()
    tell(world)
    assert len(mail.outbox) == 2


def test_the_link_of_a_mail_only_opens_a_page_behind_sign_in(world: World) -> None:
    """C18: whoever follows links in mails, a scanner too, decides nothing and learns nothing."""
    approval = asked(world)
    tell(world)
    link = next(line for line in str(mail.outbox[0].body).splitlines() if line.startswith("http"))
    before = (world.events(approval.task), Task.objects.get(pk=approval.task_id).revision)
    for method in ("get", "head") * 5:
        answer = getattr(Client(), method)(link.removeprefix("http://127.0.0.1:8000"))
        assert answer.status_code == 302 and answer.headers["Location"].startswith("/accounts/login/")
    signed_in = Client()
    signed_in.force_login(world.ada)
    for _ in range(5):
        assert signed_in.get(f"/approvals/{approval.id}/").status_code == 200
    approval.refresh_from_db()
    assert (world.events(approval.task), Task.objects.get(pk=approval.task_id).revision) == before
    assert approval.state == "open" and not Decision.objects.exists() and not link.partition("?")[2]


@pytest.mark.parametrize(("verdict", "what", "head"), [
    ("approve", "decided", "Approved"), ("reject", "decided", "Rejected"), ("ask_input", "input_asked", "A question"),
])
def test_the_requester_is_told_what_was_decided(world: World, verdict: str, what: str, head: str) -> None:
    """Issue 4, point 6: and the link leads to the request, which the requester may see."""
    approval = asked(world)
    world.decide(world.ada, approval, verdict, "because of this")
    tell(world)
    assert to() == ["rita"] and str(mail.outbox[0].subject).startswith(head)
    assert f"/tasks/{approval.task_id}/" in mail.outbox[0].body and "because" not in mail.outbox[0].body
    assert states(what) == {"rita": "sent"} and states("asked") == {}


def test_the_requester_is_told_of_every_other_end(world: World) -> None:
    expired, cancelled, amended = asked(world), asked(world), asked(world)
    tasks.cancel(world.rita, cancelled.task_id, reason="no longer wanted")
    tasks.amend(world.rita, amended.task_id, revision=amended.task.revision, amount_minor=6100, reason=None)
    world.clock(hours=24 * 8)
    world.until(lambda: Approval.objects.get(pk=expired.pk).state == "expired")
    tell(world)
    told = {str(one.subject).partition(":")[0] for one in mail.outbox if one.to == ["rita@amber.example"]}
    assert told == {
        "Nobody decided in time", "Cancelled before it was decided",
        "No longer agreed, since what it rested on changed",
    }


def test_no_mail_is_sent_that_asks_for_a_decision_after_one(world: World) -> None:
    """Lesson: a delivery that waits when it is decided is dropped, and says why."""
    approval = asked(world)
    relay()
    world.decide(world.abel, approval)
    tell(world)
    assert to() == ["rita"] and states("asked") == {"ada": "dropped", "abel": "dropped"}
    assert {one.last_error for one in telling.of_approval(approval) if one.state == "dropped"} == {
        "There is nothing to decide any more."}


def test_whoever_lost_the_right_or_the_address_is_not_told(world: World) -> None:
    """C20: rights are read again just before a mail is sent."""
    asked(world)
    relay()
    members.take_role(world.ada, world.amber, "approver")
    User.objects.filter(pk=world.abel.pk).update(is_active=False)
    send(world)
    assert not mail.outbox and states("asked") == {"ada": "dropped", "abel": "dropped"}


def test_whoever_has_spoken_is_not_asked_any_more(world: World) -> None:
    """Of two who must agree, one has: only the other is told."""
    in_force(world, rules(review(quorum=2)))
    approval = asked(world)
    relay()
    world.decide(world.ada, approval)
    send(world)
    assert to() == ["abel"] and states("asked") == {"ada": "dropped", "abel": "sent"}


def test_reviews_that_are_not_open_are_not_told(world: World) -> None:
    team(world, "risk", world.ada)
    team(world, "finance", world.abel)
    give_addresses(world)
    in_force(world, rules(review("risk", teams=["risk"]), review("finance", teams=["finance"]), order="in_order"))
    asked(world)
    tell(world)
    assert to() == ["ada"]


def test_a_substitute_is_told_as_well_as_who_is_away(world: World) -> None:
    """Issue 4, point 5: Sue may decide nothing by the rules' names, but she stands in for Ada."""
    sue = members.add_person(world.amber, "sue", "correct-horse-9", ["approver"])
    give_addresses(world)
    in_force(world, rules(review(people=["ada"])))
    now = rows.now()
    absences.enter(world.ada, world.amber, person=world.ada, substitute=sue.username,
                   starts_at=now - timedelta(hours=1), ends_at=now + timedelta(days=1))
    asked(world)
    tell(world)
    assert to() == ["ada", "sue"]


def test_whoever_it_is_handed_to_is_told_each_time(world: World) -> None:
    approval = asked(world)
    tell(world)
    mail.outbox.clear()
    for giver, taker in ((world.ada, world.abel), (world.abel, world.ada), (world.ada, world.abel)):
        verbs.hand_over(giver, approval.id, to=taker.username)
        tell(world)
    assert [one.to[0] for one in mail.outbox] == ["abel@amber.example", "ada@amber.example", "abel@amber.example"]
    assert "Handed over to you" in str(mail.outbox[0].subject)


def test_nobody_gets_mail_who_does_not_want_any_or_has_no_address(world: World) -> None:
    wish(world.ada, mail=False)
    User.objects.filter(pk=world.abel.pk).update(email="")
    asked(world)
    tell(world)
    assert not mail.outbox and not Delivery.objects.exists()


def test_a_reference_with_line_breaks_makes_no_header_of_its_own(world: World) -> None:
    """Hostile input: the order's reference comes from outside, and a release before may have stored anything."""
    approval = asked(world)
    Task.objects.filter(pk=approval.task_id).update(order_ref="A\r\nBcc: all@evil.example\n\nB\u2028C")
    tell(world)
    assert to() == ["abel", "ada"] and "\n" not in mail.outbox[0].subject and mail.outbox[0].bcc == []
    assert mail.outbox[0].subject.endswith("order A Bcc: all@evil.example B C")
    assert "Bcc" not in mail.outbox[0].message()


def test_what_the_relay_writes_twice_is_told_once(world: World) -> None:
    """A worker dies between writing the deliveries and taking the intent out of the outbox; and once more."""
    asked(world)
    [intent] = outbox.claim(limit=5, seconds=60)
    assert telling.expand(intent) is None and telling.expand(intent) is None
    Intent.objects.update(due_at=rows.now())
    tell(world)
    assert to() == ["abel", "ada"] and Delivery.objects.count() == 2


def test_a_mail_that_was_sent_and_not_written_down_comes_again_under_the_same_id(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least once: the second copy has the first one's Message-ID, so that mail programs fold them."""
    wish(world.abel, mail=False)
    asked(world)
    relay()

    def die(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("approvals.telling.sending.point", lambda name: die(name) if name == "telling.sent" else None)
        with pytest.raises(KeyboardInterrupt):
            send(world)
    send(world)
    assert len(mail.outbox) == 1 and states("asked") == {"ada": "waiting"}
    world.clock(minutes=2)
    send(world)
    first, second = (one.message()["Message-ID"] for one in mail.outbox)
    assert first == second and str(Delivery.objects.get().id) in first and states("asked") == {"ada": "sent"}


def test_a_mail_server_that_is_away_is_tried_again_until_it_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 4, point 6: retried with growing pauses, then a dead letter that says why."""
    def refuse(*_: object, **__: object) -> None:
        raise smtplib.SMTPServerDisconnected("secret words of the server")

    wish(world.abel, mail=False)
    world.retime(tell_tries=3)
    approval = asked(world)
    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", refuse)
    for tries in (1, 2):
        tell(world)
        [shown] = telling.of_approval(approval)
        assert (shown.state, shown.tries) == ("waiting", tries) and "SMTPServerDisconnected" in shown.last_error
        assert "secret" not in shown.last_error and shown.at > rows.now()
        world.clock(minutes=5)
    tell(world)
    [shown] = telling.of_approval(approval)
    assert (shown.state, shown.tries, shown.who, shown.how) == ("dead", 3, "Ada Stone", "mail")
    assert not telling.is_anything_due()


def test_one_persons_trouble_does_not_hold_back_another(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real = telling.sending.mails.compose  # type: ignore[attr-defined]

    def compose(deliveries: Any) -> Any:
        if deliveries[0].person == world.ada:
            raise RuntimeError("nobody thought of this")
        return real(deliveries)

    monkeypatch.setattr("approvals.telling.mails.compose", compose)
    asked(world)
    tell(world)
    assert to() == ["abel"] and states("asked") == {"ada": "waiting", "abel": "sent"}


def test_a_digest_is_one_mail_a_person_and_tenant(world: World) -> None:
    """Three questions within the hour: Ada is told of them together at the full hour, Abel of each at once."""
    wish(world.ada, digest="hourly")
    at(world, datetime(2027, 3, 1, 10, 10, tzinfo=UTC))
    approvals = [asked(world) for _ in range(3)]
    relay()
    world.decide(world.abel, approvals[0], "reject", "not this one")
    tell(world)
    assert to() == ["abel", "abel", "rita"]
    world.clock(minutes=50)
    mail.outbox.clear()
    tell(world)
    [digest] = mail.outbox
    assert digest.to == ["ada@amber.example"] and digest.subject == "2 messages about approvals"
    assert [str(one.id) in digest.body for one in approvals] == [False, True, True]
    ended = dict(Delivery.objects.filter(person=world.ada).values_list("approval_id", "state"))
    assert [ended[one.id] for one in approvals] == ["dropped", "sent", "sent"]


def at(world: World, moment: datetime) -> None:
    """Set the database's clock to this moment, which is ahead of it."""
    world.clock(seconds=(moment - rows.now()).total_seconds())
