"""What reaches an approval through its pages: only a form that was read, of this very approval, by who may."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import decisions, verbs
from approvals.models import Approval, Decision, Note, Snooze
from runtime_app.models import Event
from tests.approvals.test_policies import in_force, review, rules
from tests.console.conftest import Inputs, Visitor
from tests.world import World

ACTS = ("claim", "release", "over", "snooze", "wake", "comment", "withdraw")


def asked_for(world: World) -> Approval:
    return world.approval(world.ask(world.order()))


def untouched(asked: Approval) -> bool:
    asked.refresh_from_db()
    nothing = not Decision.objects.exists() and not Note.objects.exists() and not Snooze.objects.exists()
    return asked.state == "open" and asked.claimed_by_id is None and nothing


def test_reading_decides_nothing_however_it_is_asked(world: World) -> None:
    """C18, lessons 9, 12: a mail scanner, a prefetch or a link with everything in it is a look at most."""
    asked = asked_for(world)
    visitor = Visitor(world.ada)
    form = visitor.form(f"/approvals/{asked.id}/")
    events = Event.objects.count()
    said = {**form, "decision": "approve", "reason": "as it is"}
    for method in (visitor.client.get, visitor.client.head, visitor.client.options):
        assert method(f"/approvals/{asked.id}/", said).status_code in {200, 405}
        for act in ACTS:
            assert method(f"/approvals/{asked.id}/{act}/", said).status_code == 405, act
    assert visitor.client.put(f"/approvals/{asked.id}/", said).status_code in {403, 405}
    assert visitor.client.get("/approvals/together/", {"ids": str(asked.id)}).status_code == 405
    assert untouched(asked) and Event.objects.count() == events


def test_a_stranger_and_somebody_of_another_tenant_are_told_nothing(world: World) -> None:
    """M04, lesson 28: 404 for what one may not see, at every address of an approval, and a sign-in for nobody."""
    asked = asked_for(world)
    visitor, nobody = Visitor(world.bea), Visitor(None)
    token = next(iter(Inputs(visitor.text("/approvals/")).forms.values()))
    for path in ("", *(f"{act}/" for act in ACTS)):
        address = f"/approvals/{asked.id}/{path}"
        said = {**token, "decision": "approve", "text": "x", "over-to": "bea", "snooze-until": "hour"}
        assert visitor.send(address, said).status_code == 404, address
        assert nobody.client.get(address).status_code in {302, 405}
    assert untouched(asked)


def test_the_form_of_one_approval_does_not_decide_another(world: World) -> None:
    """Lessons 6, 37: back, and approve again, on the page of the next one."""
    first, second = asked_for(world), asked_for(world)
    visitor = Visitor(world.ada)
    form = visitor.form(f"/approvals/{first.id}/")
    answer = visitor.send(f"/approvals/{second.id}/", {**form, "decision": "approve", "reason": ""})
    assert answer.status_code in {409, 422}
    assert untouched(first) and untouched(second)


@pytest.mark.parametrize("reason", ["x" * 1001, "a\0b", "a\u202eb", "x" * 5001])
def test_a_reason_that_cannot_be_kept_is_refused_beside_its_field(world: World, reason: str) -> None:
    """Bad input: in words, nothing recorded, and what was typed is not lost without a word."""
    asked = asked_for(world)
    visitor = Visitor(world.ada)
    address = f"/approvals/{asked.id}/"
    for verdict in ("approve", "reject", "ask_input"):
        answer = visitor.send(address, {**visitor.form(address), "decision": verdict, "reason": reason})
        assert answer.status_code == 422, (verdict, answer.status_code)
    assert untouched(asked)


@pytest.mark.parametrize("changes", [
    {"decision": ""}, {"decision": "APPROVE"}, {"decision": "approve\0"}, {"nonce": "short"}, {"nonce": ""},
    {"revision": "-1"}, {"revision": "99999999999999999999"}, {"revision": "1.5"}, {"fingerprint": ""},
    {"fingerprint": "\0" * 64}, {"fingerprint": "0" * 64}, {"approval": "nothing"}, {"approval": "\0"},
], ids=str)
def test_a_form_that_was_bent_records_nothing_and_is_no_fault(world: World, changes: dict[str, str]) -> None:
    """Bad input: every hidden field, one at a time."""
    asked = asked_for(world)
    visitor = Visitor(world.ada)
    address = f"/approvals/{asked.id}/"
    answer = visitor.send(address, {**visitor.form(address), "decision": "approve", "reason": "", **changes})
    assert answer.status_code in {409, 422}, answer.status_code
    assert untouched(asked)


@pytest.mark.parametrize("said", [
    {"to": "a\0bel"}, {"to": "nobody"}, {"to": "rita"}, {"to": "ada"}, {"to": "bea"}, {"to": "x" * 500},
    {"to": "abel", "text": "x" * 1001}, {"to": "abel", "text": "\0"},
], ids=str)
def test_handing_over_to_nobody_who_may_is_refused_on_the_page(world: World, said: dict[str, str]) -> None:
    """Bad input: never to the requester, a stranger or oneself, and never a fault."""
    asked = asked_for(world)
    visitor = Visitor(world.ada)
    page = f"/approvals/{asked.id}/"
    fields: dict[str, Any] = {**visitor.form(page), **{f"over-{name}": value for name, value in said.items()}}
    assert visitor.send(f"{page}over/", fields).status_code in {403, 409, 422}
    assert untouched(asked)


def test_a_page_that_was_open_while_the_vote_was_taken_back_says_so(world: World) -> None:
    """C14: the replayed form is the conflict page, and not told as decided."""
    in_force(world, rules(review(quorum=2)))
    asked = asked_for(world)
    visitor = Visitor(world.ada)
    address = f"/approvals/{asked.id}/"
    form = {**visitor.form(address), "decision": "approve", "reason": ""}
    assert visitor.send(address, form).status_code == 302
    verbs.withdraw_vote(world.ada, asked.id)
    assert visitor.send(address, form).status_code == 409
    assert not Decision.objects.filter(withdrawn_at=None).exists()
    assert decisions.why_not(world.ada, Approval.objects.select_related("task").get(pk=asked.pk)) is None
