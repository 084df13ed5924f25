"""Mails leave through a real mail server, which may be away, refuse, or take one and never say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail

from approvals import telling
from approvals.models import Approval, Delivery
from tests.approvals.mail_server import MailServer, mail_server
from tests.approvals.telling import give_addresses, tell, wish
from tests.world import World


@pytest.fixture
def post(world: World, settings: Any) -> Iterator[MailServer]:
    """Mail to Ada alone goes to this server."""
    give_addresses(world)
    wish(world.abel, mail=False)
    with mail_server() as made:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", made.port
        yield made


def asked(world: World) -> Approval:
    return world.approval(world.ask(world.order()))


def test_a_mail_arrives_as_it_was_written(world: World, post: MailServer) -> None:
    approval = asked(world)
    tell(world)
    [took] = post.took
    body = str(took.get_payload(decode=True).decode())  # type: ignore[union-attr]
    assert took["To"] == "ada@amber.example" and took["Auto-Submitted"] == "auto-generated"
    assert took["Message-ID"] == f"<{Delivery.objects.get().id}@127.0.0.1>"
    assert body.splitlines() == [
        f"To decide: refund of 60.00 USD, order {approval.task.order_ref}",
        next(line for line in body.splitlines() if line.startswith("The time to decide ends ")),
        f"http://127.0.0.1:8000/approvals/{approval.id}/", "",
        "The links open a page of Amber Traders behind its sign-in; nothing is decided by opening them.",
    ]
    assert not mail.outbox


def test_what_the_server_took_without_saying_so_comes_twice_under_one_id(world: World, post: MailServer) -> None:
    """At least once, and never lost: the answer behind the mail is what got lost."""
    approval = asked(world)
    post.faults = ["hang up"]
    tell(world)
    [shown] = telling.of_approval(approval)
    assert (shown.state, len(post.took)) == ("waiting", 1) and "could not be sent" in shown.last_error
    world.clock(minutes=2)
    tell(world)
    assert len(post.took) == 2 and len({one["Message-ID"] for one in post.took}) == 1
    assert telling.of_approval(approval)[0].state == "sent"


def test_what_the_server_refuses_is_tried_again_and_then_given_up(world: World, post: MailServer) -> None:
    world.retime(tell_tries=3)
    first, second = asked(world), asked(world)
    post.faults = ["later", "later"]
    tell(world)
    assert {one.last_error for a in (first, second) for one in telling.of_approval(a)} == {
        "The mail server answered 451."}
    world.clock(minutes=2)
    post.faults = ["no", "no", "no", "no"]
    tell(world)
    world.clock(minutes=5)
    tell(world)
    for approval in (first, second):
        [shown] = telling.of_approval(approval)
        assert (shown.state, shown.tries, shown.last_error) == ("dead", 3, "The mail server answered 550.")
    assert not post.took


def test_a_server_that_is_not_there_holds_up_nothing_else(world: World, post: MailServer, settings: Any) -> None:
    settings.EMAIL_PORT = 1
    approval = asked(world)
    tell(world)
    [shown] = telling.of_approval(approval)
    assert shown.state == "waiting" and shown.last_error == "The mail could not be sent: ConnectionRefusedError."
    world.decide(world.ada, approval)
    world.finish(approval.task)
    assert approval.task.status == "completed"
