"""The approver's list: what may be decided, filters as addresses, what is in whose hand, and several together."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import absences, verbs
from approvals.models import Approval, Bulk, BulkItem, Decision, SavedFilter, Snooze
from runtime_app import members, rows, tasks
from runtime_app.births import NewTask, open_tasks
from runtime_app.models import Task, User
from tests.approvals.test_policies import in_force, review, rules, team
from tests.console.conftest import Visitor
from tests.world import PASSWORD, World

Visit = Callable[[User | None], Visitor]
ROW = re.compile(r'class="row-link" href="/approvals/([0-9a-f-]{36})/')


def shown(browser: Visitor, path: str = "/approvals/") -> list[str]:
    return ROW.findall(browser.text(path))


def asked(world: World, *amounts: int, **given: Any) -> list[Approval]:
    return [world.approval(world.ask(world.order(12_000), amount, **given)) for amount in amounts]


def ids(approvals: list[Approval]) -> list[str]:
    return [str(a.id) for a in approvals]


def acts(browser: Visitor) -> dict[str, str]:
    return browser.form("/approvals/")


def test_what_one_may_decide_stands_first_and_the_rest_is_one_step_away(world: World, visit: Visit) -> None:
    """Issue point 8: to decide, mine, snoozed, decided by me, all open, all decided; the nearest deadline first."""
    team(world, "risk", world.abel)
    in_force(world, rules(review("risk", teams=["risk"], above={"USD": 9000}), review()))
    small, large, own = asked(world, 6000, 10_000, 7000)
    ada, abel = visit(world.ada), visit(world.abel)
    assert shown(ada) == ids([small, large, own]) and shown(abel) == ids([small, large, own])
    world.decide(world.ada, large)
    assert shown(ada) == ids([small, own]) and shown(abel) == ids([small, large, own])
    world.decide(world.ada, small)
    assert shown(ada) == ids([own])
    assert shown(ada, "/approvals/?show=done") == ids([small]) and shown(abel, "/approvals/?show=done") == []
    assert shown(abel, "/approvals/?show=decided") == ids([small])
    assert shown(ada, "/approvals/?show=open") == ids([large, own])
    assert "you have decided" in ada.text("/approvals/?show=open")
    assert shown(abel, "/approvals/?show=mine") == ids([large]), "his team is asked by name"
    assert shown(visit(world.sam)) == ids([large, own]), "who decides nothing begins with all that is open"


def test_what_is_taken_stands_in_mine_and_others_see_in_whose_hand(world: World, visit: Visit) -> None:
    """Issue point 4: claim, give back, from the list, and back to the same filters."""
    first, second = asked(world, 6000, 6100)
    ada, abel = visit(world.ada), visit(world.abel)
    form = {**ada.form("/approvals/?currency=USD", "/approvals/")}
    answer = ada.send(f"/approvals/{first.id}/claim/", form)
    assert (answer.status_code, answer["Location"]) == (302, "/approvals/?currency=USD")
    assert shown(ada) == ids([second]) and shown(ada, "/approvals/?show=mine") == ids([first])
    assert "In your hand" in ada.text("/approvals/?show=mine")
    assert shown(abel) == ids([second]) and "in the hand of Ada Stone" in abel.text("/approvals/?show=open")
    taken = abel.send(f"/approvals/{first.id}/claim/", acts(abel))
    assert taken.status_code == 409 and b"Ada Stone has taken this in hand" in taken.content
    ada.send(f"/approvals/{first.id}/release/", acts(ada))
    assert shown(abel) == ids([first, second])


def test_what_is_put_away_comes_back_by_itself(world: World, visit: Visit) -> None:
    """Issue point 4: out of one's own list only, until the next morning, and never beyond the deadline."""
    one = asked(world, 6000)[0]
    ada = visit(world.ada)
    ada.send(f"/approvals/{one.id}/snooze/", acts(ada))
    assert shown(ada) == [] and shown(ada, "/approvals/?show=snoozed") == ids([one])
    assert shown(visit(world.abel)) == ids([one])
    world.clock(hours=36)
    assert shown(ada) == ids([one]) and shown(ada, "/approvals/?show=snoozed") == []
    world.clock(seconds=(Approval.objects.get().deadline_at - rows.now()).total_seconds() - 1800)
    answer = ada.client.post(f"/approvals/{one.id}/snooze/", acts(ada), follow=True)
    assert "too little time" in answer.content.decode() and Snooze.objects.get().until < rows.now()


def test_filters_are_addresses_that_survive_opening_one_and_deciding(world: World, visit: Visit) -> None:
    """Lessons 24, 31: the way back leads to the same filters, also after a decision, and the next one is of them."""
    small, middle, large = asked(world, 6000, 7000, 8000)
    path = "/approvals/?currency=USD&least=65&most=80.00&requester=Rita"
    ada = visit(world.ada)
    assert shown(ada, path) == ids([middle, large])
    page = ada.text(path)
    link = re.search(rf'href="(/approvals/{middle.id}/\?from=[^"]+)"', page)
    assert link is not None
    detail = ada.text(unescape(link.group(1)))
    assert f'href="{path.replace("&", "&amp;")}"' in detail
    hidden = ada.form(unescape(link.group(1)), f"/approvals/{middle.id}/")
    answer = ada.client.post(f"/approvals/{middle.id}/", {**hidden, "decision": "approve"}, follow=True)
    after = answer.content.decode()
    assert f'href="/approvals/{large.id}/?from=' in after and f"/approvals/{small.id}/" not in after
    assert shown(ada, f"/approvals/?q={small.task.order_ref}") == ids([small])
    assert shown(ada, f"/approvals/?q=pi_{small.task.order_ref}") == ids([small])
    day = small.deadline_at.date()
    assert shown(ada, f"/approvals/?before={day + timedelta(days=2)}") == ids([small, large])
    assert shown(ada, f"/approvals/?before={day - timedelta(days=2)}") == []
    assert shown(ada, "/approvals/?requester=nobody") == []


@pytest.mark.parametrize(("query", "sentence"), [
    ("least=10", "Choose the currency too"),
    ("currency=USD&most=ten", "Write the amount in USD"),
    ("currency=XXX", "There is no such currency"),
    ("before=2027-13-01", "Write the day as"),
])
def test_a_filter_that_cannot_be_read_is_said_beside_its_field(
    world: World, visit: Visit, query: str, sentence: str
) -> None:
    """Bad input: never a silent default."""
    one = asked(world, 6000)
    page = visit(world.ada).text(f"/approvals/?{query}")
    assert sentence in page and ROW.findall(page) == ids(one)


def test_a_kept_filter_keeps_its_words_and_never_what_matched(world: World, visit: Visit) -> None:
    """Lesson 27: who joins later is found by it; it is one's own, and what is no filter is not kept."""
    asked(world, 6000)
    ada = visit(world.ada)
    path = "/approvals/?show=open&requester=rita"
    form = ada.form(path, "/approvals/filters/")
    answer = ada.send("/approvals/filters/", {**form, "name": "Of Rita"})
    assert answer["Location"] == path and SavedFilter.objects.get().query == "show=open&requester=rita"
    later = asked(world, 7000)[0]
    page = ada.text("/approvals/")
    assert 'href="/approvals/?show=open&amp;requester=rita"' in page and str(later.id) in ada.text(path)
    assert "Of Rita" not in visit(world.abel).text("/approvals/")
    ada.send("/approvals/filters/", {**form, "name": "<b>", "query": "cursor=x&evil=1&show=open"})
    assert SavedFilter.objects.get(name="<b>").query == "show=open" and "<b><" not in ada.text("/approvals/")
    refused = ada.client.post("/approvals/filters/", {**form, "name": " "}, follow=True)
    assert "Give it a name" in refused.content.decode()
    ada.send("/approvals/filters/drop/", {**form, "name": "Of Rita"})
    assert not SavedFilter.objects.filter(name="Of Rita").exists()


def test_who_is_away_and_who_stands_in_are_reminded(world: World, visit: Visit) -> None:
    """Issue point 5: the list says so, and what is asked of the absent one is there for the substitute."""
    team(world, "risk", world.ada)
    in_force(world, rules(review("risk", teams=["risk"])))
    one = asked(world, 6000)
    assert shown(visit(world.abel)) == []
    now = rows.now()
    absences.enter(world.ada, world.amber, person=world.ada, substitute="abel", starts_at=now,
                   ends_at=now + timedelta(days=1))
    assert "Abel Reed stands in for you" in visit(world.ada).text("/approvals/")
    assert "You stand in for Ada Stone until" in visit(world.abel).text("/approvals/")
    assert shown(visit(world.abel)) == ids(one)
    page = f"/approvals/{one[0].id}/"
    abel = visit(world.abel)
    assert "You decide in the place of Ada Stone" in abel.text(page)
    abel.send(page, {**abel.form(page), "decision": "approve"})
    assert "in the place of Ada Stone" in visit(world.sam).text(page)


def test_an_approval_that_nobody_can_decide_is_told_loudly(world: World, visit: Visit) -> None:
    """Lesson 13: on the list and on its page, as soon as the people are gone."""
    one = asked(world, 6000)[0]
    sam = visit(world.sam)
    assert "Nobody can decide" not in sam.text("/approvals/")
    for person in (world.ada, world.abel):
        members.take_role(person, world.amber, "approver")
    assert "Nobody can decide some of these" in sam.text("/approvals/")
    assert "Nobody can decide this" in sam.text(f"/approvals/{one.id}/")


def test_many_open_ones_ask_the_database_as_much_as_one_and_are_walked_once(world: World, visit: Visit) -> None:
    """Lesson 28, C48: also with notes, votes and changed facts; every page has the same number of questions."""
    one = asked(world, 6000)[0]
    ada = visit(world.ada)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            ada.text("/approvals/")
        with CaptureQueriesContext(connection) as mine:
            ada.text("/approvals/?show=mine")
        counts.append((len(queries), len(mine)))
        made = _copies(one, 120) if len(counts) == 1 else []
    assert counts[0] == counts[1] and max(counts[0]) <= 24, counts
    path, met = "/approvals/", list[str]()
    while path:
        page = ada.text(path)
        met += ROW.findall(page)
        found = re.search(r'href="(/approvals/\?[^"]*cursor=[^"]*)" rel="next"', page)
        path = unescape(found.group(1)) if found else ""
    assert len(met) == len(set(met)) == 121 and {str(a.id) for a in made} < set(met)


def _copies(one: Approval, count: int) -> list[Approval]:
    """So many open approvals of the same moment, each of a task of its own."""
    new = [
        NewTask(tenant_id=one.tenant_id, workflow="noop3", workflow_version=1, request_key=f"copy-{n}",
                request_sha256="0" * 64, actor="system", order_ref=f"ORD-{n}")
        for n in range(count)
    ]  # fmt: skip
    stored = open_tasks(new)
    Task.objects.filter(id__in=stored).update(status="waiting_approval", revision=2)
    return Approval.objects.bulk_create(
        Approval(
            tenant_id=one.tenant_id, task_id=id, state="open", fingerprint=one.fingerprint, facts=one.facts,
            policy_version=one.policy_version, rules=one.rules, quorum=one.quorum, deadline_at=one.deadline_at,
        )
        for id in stored
    )


def test_small_ones_are_ticked_looked_at_and_decided_together(world: World, visit: Visit) -> None:
    """Issue point 7, lesson 25: totals by currency, each result in words, and a second post does nothing."""
    in_force(world, rules(review(), bulk_up_to={"USD": 7000, "EUR": 7000}))
    small = asked(world, 6000, 6500)
    euro = world.approval(world.ask(world.order(12_000, currency="EUR"), 6100, currency="EUR"))
    large = asked(world, 9000)[0]
    ada = visit(world.ada)
    ticks = re.findall(r'type="checkbox" name="ids" value="([0-9a-f-]+)"', ada.text("/approvals/"))
    assert ticks == ids([*small, euro]) and str(large.id) not in ticks
    form = ada.form("/approvals/", "/approvals/together/")
    answer = ada.send("/approvals/together/", {**form, "ids": ticks})
    page = str(answer["Location"])
    text = ada.text(page)
    assert "125.00" in text and "61.00" in text and "Decide 3 approvals together" in text
    assert not Decision.objects.exists()
    hidden = ada.form(page)
    assert ada.send(page, {**hidden, "decision": "reject", "reason": ""}).status_code == 422
    world.decide(world.abel, small[1], "reject", "no slip")
    for _ in range(2):
        assert ada.send(page, {**hidden, "decision": "approve", "reason": "slips seen"}).status_code == 302
    after = ada.text(page)
    assert "2 approved" in after and "Abel Reed decided this first" in after
    assert Decision.objects.filter(person=world.ada).count() == 2
    other = ada.send(page, {**hidden, "decision": "reject", "reason": "no"})
    assert other.status_code == 409 and b"otherwise already" in other.content


def test_a_selection_takes_nothing_that_was_not_offered(world: World, visit: Visit) -> None:
    """Lesson 28: another tenant's, too large, none, and another person's selection."""
    in_force(world, rules(review(), bulk_up_to={"USD": 7000}))
    small, large = asked(world, 6000, 9000)
    ada, bea = visit(world.ada), visit(world.bea)
    form = ada.form("/approvals/", "/approvals/together/")
    assert ada.send("/approvals/together/", {**form, "ids": ids([small, large])}).status_code == 409
    assert ada.send("/approvals/together/", {**form, "ids": []}).status_code == 422
    assert ada.send("/approvals/together/", {**form, "ids": ["\x00"]}).status_code == 404
    theirs = bea.form("/approvals/", "/approvals/together/")
    assert bea.send("/approvals/together/", {**theirs, "ids": ids([small])}).status_code == 404
    assert not Bulk.objects.exists()
    page = str(ada.send("/approvals/together/", {**form, "ids": ids([small])})["Location"])
    for stranger in (visit(world.abel), bea):
        assert stranger.get(page).status_code == 404
    assert BulkItem.objects.get().result == "chosen"


def test_a_changed_question_is_marked_in_the_list(world: World, visit: Visit) -> None:
    """M20: the row says that the facts have changed since it was asked before."""
    one = asked(world, 6000)[0]
    tasks.amend(world.rita, one.task_id, revision=one.task.revision, amount_minor=6600, reason=None)
    world.approval(one.task)
    assert "facts changed" in visit(world.ada).text("/approvals/")


def test_a_handed_over_approval_is_in_the_other_ones_list(world: World, visit: Visit) -> None:
    members.add_person(world.amber, "noor", PASSWORD, ["approver"], full_name="Noor Vale")
    one = asked(world, 6000)[0]
    verbs.hand_over(world.ada, one.id, to="abel", text="please look")
    abel = visit(world.abel)
    assert shown(abel, "/approvals/?show=mine") == ids([one])
    assert 'Mine<span class="count">1' in abel.text("/approvals/")
