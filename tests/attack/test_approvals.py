"""Approvals under hands that mean ill, or only are unlucky: nobody decides more, or otherwise, than the rules say."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from approvals import absences, policies, rounds, rules_json, teams, verbs
from approvals.models import Absence, Approval, Decision, Policy, Team
from runtime_app import members, rows
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound, RuntimeAppError
from runtime_app.models import Task, User
from runtime_app.money import MAX_MINOR
from tests.approvals.test_policies import in_force, review, rules, team
from tests.attack.bent import bend
from tests.world import World

ODD = ('o"neil', "back\\slash", "{curly,}", "100%s", "änne", "a b'; --", "ada@example.org")


def test_the_form_of_another_person_is_refused_and_not_a_fault(world: World) -> None:
    """C14, bad input: a nonce is one form's of one person; whoever posts it for another one records nothing."""
    in_force(world, rules(review(quorum=2)))
    asked = world.approval(world.ask(world.order()))
    world.decide(world.ada, asked, nonce="n" * 32)
    with pytest.raises(RuntimeAppError):
        world.decide(world.abel, asked, nonce="n" * 32)
    assert Decision.objects.count() == 1
    world.decide(world.abel, asked)
    assert Approval.objects.get(pk=asked.pk).state == "approved"


def test_the_form_of_a_vote_that_was_taken_back_records_nothing(world: World) -> None:
    """C14, replayed form: what was taken back is not given again by an old page, nor told as if it stood."""
    in_force(world, rules(review(quorum=2)))
    asked = world.approval(world.ask(world.order()))
    world.decide(world.ada, asked, nonce="n" * 32)
    verbs.withdraw_vote(world.ada, asked.id)
    with pytest.raises(Conflict, match="taken back"):
        world.decide(world.ada, asked, nonce="n" * 32)
    world.decide(world.abel, asked)
    assert Approval.objects.get(pk=asked.pk).state == "open"
    world.decide(world.ada, asked)
    assert Approval.objects.get(pk=asked.pk).state == "approved"


def test_one_nonce_decides_one_of_two_approvals_by_itself(world: World) -> None:
    """Lesson 37: the form names its own approval; the same nonce on another one is another form."""
    first, second = (world.approval(world.ask(world.order())) for _ in range(2))
    world.decide(world.ada, first, nonce="n" * 32)
    assert Approval.objects.get(pk=second.pk).state == "open"
    with pytest.raises(Conflict):
        world.decide(world.ada, second, nonce="n" * 32, fingerprint=first.fingerprint)
    assert Decision.objects.filter(approval=second).count() == 0


def test_a_policy_that_is_withdrawn_while_it_is_agreed_to_leaves_the_one_before_in_force(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M38: at no moment is a tenant that has a policy without one."""
    before = in_force(world, rules(review(quorum=2)))
    proposed = policies.propose(world.tom, world.amber, "refund", rules(review()), why="fewer")
    now, asked = rows.now, list[int]()

    def withdraw() -> None:
        Policy.objects.filter(pk=proposed.pk, state="proposed").update(state="withdrawn", decided_by=world.tom)
        connection.close()

    def in_between() -> Any:
        asked.append(1)
        if len(asked) == 2:  # the first time it is for the simulation, then for what is about to be written
            other = threading.Thread(target=withdraw)
            other.start()
            other.join(20)
        return now()

    monkeypatch.setattr(rows, "now", in_between)
    with pytest.raises(Conflict):
        policies.agree(User.objects.get(username="tessa"), proposed.id)
    assert Policy.objects.get(state="in_force").pk == before.pk


@pytest.mark.parametrize("name", ODD)
def test_any_username_may_be_named_in_rules(world: World, name: str) -> None:
    """Bad input: quotes, braces, percent signs and blanks in a name are letters like others."""
    odd = members.add_person(world.amber, name, None, ["approver"])
    in_force(world, rules(review(people=[name])))
    order = world.order()
    task = world.ask(order)
    asked = world.approval(task)
    with pytest.raises(Forbidden):
        world.decide(world.ada, asked)
    world.decide(odd, asked)
    world.finish(task)
    assert world.operation(task).authority["approvers"] == [name] and len(world.effects(order)) == 1


def test_zero_bytes_in_names_are_refused_beside_their_field(world: World) -> None:
    """Bad input: nothing of it reaches the database, and nobody sees a fault."""
    asked = world.approval(world.ask(world.order()))
    now = rows.now()
    made = teams.create(world.tom, world.amber, "risk")
    for refused, field in (
        (lambda: verbs.hand_over(world.ada, asked.id, to="a\0bel"), "to"),
        (lambda: absences.enter(world.ada, world.amber, person=world.ada, substitute="a\0bel", starts_at=now,
                                ends_at=now + timedelta(hours=1)), "substitute"),
        (lambda: teams.add(world.tom, made.id, "a\0da"), "username"),
        (lambda: teams.create(world.tom, world.amber, "a\0da"), "ref"),
    ):
        with pytest.raises(FieldErrors) as found:
            refused()
        assert field in found.value.errors
    with pytest.raises(RuntimeAppError):
        teams.remove(world.tom, made.id, "a\0da")
    verbs.drop_filter(world.ada, world.amber.id, name="a\0b")
    for person, field in (("a\0da", "reviews.0.who.people.0"), ("x" * 151, "reviews.0.who.people.0")):
        with pytest.raises(FieldErrors) as found:
            policies.propose(world.tom, world.amber, "refund", rules(review(people=[person])), why="try")
        assert field in found.value.errors


def test_an_admin_alone_does_not_take_another_ones_place(world: World) -> None:
    """S7: an admin who may decide too makes nobody absent in order to decide in that person's stead."""
    members.add_person(world.amber, "tom", None, ["approver"])
    now = rows.now()
    with pytest.raises(FieldErrors) as refused:
        absences.enter(world.tom, world.amber, person=world.ada, substitute="tom", starts_at=now,
                       ends_at=now + timedelta(hours=1))
    assert "substitute" in refused.value.errors
    assert not Absence.objects.exists()
    absences.enter(world.tom, world.amber, person=world.ada, substitute="abel", starts_at=now,
                   ends_at=now + timedelta(hours=1))


def test_a_place_is_taken_once_by_the_person_or_by_the_substitute(world: World) -> None:
    """Done when: distinct. Abel speaks for Ada, who is back; a chain of substitutes hands nothing on."""
    carl = members.add_person(world.amber, "carl", None, ["approver"])
    in_force(world, rules(review("first", people=["ada"]), review("second", people=["ada", "carl"])))
    now = rows.now()
    away = absences.enter(world.ada, world.amber, person=world.ada, substitute="abel", starts_at=now,
                          ends_at=now + timedelta(days=1))
    with pytest.raises(FieldErrors):
        absences.enter(world.abel, world.amber, person=world.abel, substitute="carl", starts_at=now,
                       ends_at=now + timedelta(days=1))
    asked = world.approval(world.ask(world.order()))
    world.decide(world.abel, asked)
    absences.end(world.ada, away.id)
    with pytest.raises(RuntimeAppError):
        world.decide(world.ada, asked)
    assert Approval.objects.get(pk=asked.pk).state == "open"
    world.decide(carl, asked)
    assert Approval.objects.get(pk=asked.pk).state == "approved"


def test_nobody_stands_in_for_whoever_asked(world: World) -> None:
    """M21: two people who work together get round neither exclusion: Rita asks, and Abel is her substitute."""
    members.add_person(world.amber, "rita", None, ["approver"])
    in_force(world, rules(review(people=["rita", "ada"])))
    now = rows.now()
    absences.enter(world.rita, world.amber, person=world.rita, substitute="abel", starts_at=now,
                   ends_at=now + timedelta(days=1))
    asked = world.approval(world.ask(world.order()))
    for person in (world.abel, world.rita):
        with pytest.raises(Forbidden):
            world.decide(person, asked)
    assert not Decision.objects.exists()


def test_what_an_older_release_has_asked_is_decided_by_as_many_people_as_it_said(world: World) -> None:
    """Rules that are not there in the row are what that release did: so many of those who may decide."""
    order = world.order()
    task = world.ask(order)
    asked = world.approval(task)
    with connection.cursor() as cursor:  # what is asked never changes otherwise
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE approvals_approval SET rules = '{}', quorum = 2, policy_id = NULL")
        cursor.execute("SET session_replication_role = origin")
    asked.refresh_from_db()
    world.decide(world.ada, asked)
    world.work()
    assert world.effects(order) == [] and Approval.objects.get(pk=asked.pk).state == "open"
    world.decide(world.abel, asked)
    world.finish(task)
    assert len(world.effects(order)) == 1


@pytest.mark.parametrize("amount", [MAX_MINOR + 1, 2**63, -1, 1.0, True, "5", None])
def test_limits_are_whole_numbers_that_can_be_kept(world: World, amount: Any) -> None:
    """Bad input: beside the very currency; the largest amount itself is kept as it is."""
    with pytest.raises(FieldErrors) as refused:
        rules_json.load(rules(review(above={"USD": amount})))
    assert "reviews.0.above.USD" in refused.value.errors
    assert rules_json.load(rules(review(above={"USD": MAX_MINOR}))).reviews[0].above == {"USD": MAX_MINOR}


def test_rules_come_back_from_the_database_as_they_were_agreed(world: World) -> None:
    """A day's end, seconds and all limits: what is written is what is read."""
    said = rules(review(above={"USD": 1, "*": 2}, roles=[{"name": "approver", "up_to": {"KWD": 7}}]), hours={
        "days": [0, 6], "opens": "00:00:30", "closes": "23:59:59.999999", "holidays": ["2026-12-25"]})
    read = rules_json.load(said)
    assert rules_json.load(rules_json.dump(read)) == read


def test_a_policy_agreed_to_while_the_request_is_judged_is_the_one_that_counts(world: World) -> None:
    """M20: a handler has read the rules before; what it asks is asked anew before anything is sent."""
    in_force(world, rules(review(people=["ada"])))
    stricter = policies.propose(world.tom, world.amber, "refund", rules(review(people=["abel"])), why="other people")
    reads: list[int] = []

    def read(real: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(1)
        if len(reads) == 1:
            policies.agree(User.objects.get(username="tessa"), stricter.id)
            while rounds.work(None, actor="worker:other", limit=1):
                pass
            connection.close()
        return real(*args, **kwargs)

    bend(world, orders={"read_order": read})
    order = world.order()
    task = world.ask(order)
    old = world.approval(task)
    assert old.policy_version == 2, "read before the change"
    world.decide(world.ada, old)
    again = world.approval(task)
    assert again.policy_version == 3 and world.effects(order) == []
    with pytest.raises(Forbidden):
        world.decide(world.ada, again)
    world.decide(world.abel, again)
    world.finish(task)
    assert len(world.effects(order)) == 1


def test_what_is_in_the_hand_of_somebody_who_left_is_decided_by_others(world: World) -> None:
    """Lesson 16, point 5: a claim stops nobody from deciding, and is given back when its holder may decide no more."""
    asked = world.approval(world.ask(world.order()))
    verbs.claim(world.ada, asked.id)
    members.take_role(world.ada, world.amber, "approver")
    with pytest.raises(NotFound):
        verbs.hand_over(world.ada, asked.id, to="abel")
    while rounds.work(None, actor="worker:in-test", limit=1):
        pass
    asked.refresh_from_db()
    assert asked.claimed_by_id is None
    verbs.claim(world.abel, asked.id)
    world.decide(world.abel, asked)
    assert Approval.objects.get(pk=asked.pk).state == "approved"


def test_who_leaves_a_team_after_agreeing_counts_no_more(world: World) -> None:
    """M21, C20: counted again before it is sent; the same people are asked anew."""
    team(world, "risk", world.ada, world.abel)
    in_force(world, rules(review(teams=["risk"])))
    order = world.order()
    task = world.ask(order)
    world.decide(world.ada, world.approval(task))
    teams.remove(world.tom, Team.objects.get(ref="risk").id, "ada")
    again = world.approval(task)
    assert world.effects(order) == []
    world.decide(world.abel, again)
    world.finish(task)
    assert Task.objects.get(pk=task.pk).status == "completed"
