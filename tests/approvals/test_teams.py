"""Teams and leavers: who may decide changes at once, votes that were given change never, and are counted again."""

from __future__ import annotations

import pytest

from approvals import leavers, rounds, simulation, stuck, teams, verbs
from approvals.models import Approval, Decision, Note, Team, TeamMember
from approvals.rules_json import load
from runtime_app import members
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound
from runtime_app.models import Event, User
from tests.approvals.test_policies import in_force, review, rules, team
from tests.world import PASSWORD, World


def give_back(world: World) -> None:
    while rounds.work(None, actor="worker:in-test", limit=1):
        pass


def test_admins_of_the_tenant_change_its_teams_and_nobody_else(world: World) -> None:
    made = teams.create(world.tom, world.amber, "risk")
    teams.add(world.tom, made.id, "ada")
    assert [one.ref for one in teams.of_tenant(world.tom, world.amber)] == ["risk"]
    for person in (world.ada, world.ava, world.olga):
        with pytest.raises(Forbidden):
            teams.create(person, world.amber, "mine")
        with pytest.raises(Forbidden):
            teams.add(person, made.id, "abel")
        with pytest.raises(Forbidden):
            teams.remove(person, made.id, "ada")
    for ask in (lambda: teams.create(world.bea, world.amber, "x"), lambda: teams.add(world.bea, made.id, "bea"),
                lambda: teams.remove(world.bea, made.id, "ada"), lambda: teams.of_tenant(world.bea, world.amber)):
        with pytest.raises(NotFound):
            ask()
    assert TeamMember.objects.get().person == world.ada


def test_a_team_is_named_once_and_holds_people_of_its_tenant_once(world: World) -> None:
    made = teams.create(world.tom, world.amber, "risk")
    for ref in ("Risk", "", "risk", "1st", "a" * 41, "risk\x00", "ri sk"):
        with pytest.raises(FieldErrors) as refused:
            teams.create(world.tom, world.amber, ref)
        assert "ref" in refused.value.errors
    User.objects.filter(username="abel").update(is_active=False)
    teams.add(world.tom, made.id, "ada")
    for username in ("bea", "abel", "nobody", "ada", ""):
        with pytest.raises(FieldErrors) as refused:
            teams.add(world.tom, made.id, username)
        assert "username" in refused.value.errors
    teams.remove(world.tom, made.id, "ada")
    with pytest.raises(Conflict):
        teams.remove(world.tom, made.id, "ada")
    assert not TeamMember.objects.exists()


def test_who_is_added_decides_what_is_open_and_who_is_taken_out_does_not(world: World) -> None:
    """The rules are frozen when it is asked; who is in a team is not."""
    team(world, "risk", world.ada)
    in_force(world, rules(review("risk", teams=["risk"])))
    risk, asked = Team.objects.get(), world.approval(world.ask(world.order()))
    with pytest.raises(Forbidden):
        world.decide(world.abel, asked)
    teams.add(world.tom, risk.id, "abel")
    teams.remove(world.tom, risk.id, "ada")
    with pytest.raises(Forbidden, match="asks others"):
        world.decide(world.ada, asked)
    world.decide(world.abel, asked)
    assert Approval.objects.get(pk=asked.pk).state == "approved"


def test_a_vote_stays_as_it_was_and_no_longer_counts_when_money_would_be_sent(world: World) -> None:
    """Point 5: no count changes silently: nothing is sent, and people are asked anew."""
    team(world, "risk", world.ada, world.abel)
    in_force(world, rules(review("risk", teams=["risk"])))
    order = world.order()
    task = world.ask(order)
    asked = world.approval(task)
    world.decide(world.ada, asked)
    before = Decision.objects.values().get()
    teams.remove(world.tom, Team.objects.get().id, "ada")
    world.until(lambda: Approval.objects.filter(task=task, state="open").exists())
    assert Decision.objects.values().get() == before and world.effects(order) == []
    world.decide(world.abel, world.approval(task))
    world.finish(task)
    assert len(world.effects(order)) == 1


@pytest.mark.parametrize("leaves", ["deactivated", "role taken"])
def test_what_leavers_had_in_hand_is_given_back_by_the_system(world: World, leaves: str) -> None:
    """The written rule: said in a note and an event, once; others may take it in hand again."""
    asked = world.approval(world.ask(world.order()))
    kept = world.approval(world.ask(world.order()))
    verbs.claim(world.ada, asked.id)
    verbs.claim(world.abel, kept.id)
    give_back(world)
    assert Approval.objects.filter(claimed_by__isnull=False).count() == 2
    if leaves == "deactivated":
        User.objects.filter(pk=world.ada.pk).update(is_active=False)
    else:
        members.take_role(world.ada, world.amber, "approver")
    assert leavers.is_anything_due() and rounds.is_anything_due()
    with pytest.raises(Conflict, match="in hand"):
        verbs.claim(world.abel, asked.id)
    give_back(world)
    assert not leavers.is_anything_due()
    note = Note.objects.get(kind="released")
    assert (note.person, note.other, note.approval_id) == (None, world.ada, asked.id)
    said = world.said(asked.task, "approval.released")
    assert said["from"] == "ada" and Event.objects.filter(type="approval.released").count() == 1
    assert verbs.claim(world.abel, asked.id).claimed_by == world.abel
    assert Approval.objects.get(pk=kept.pk).claimed_by == world.abel


def test_nothing_of_a_decision_that_was_taken_is_given_back(world: World) -> None:
    asked = world.approval(world.ask(world.order()))
    verbs.claim(world.ada, asked.id)
    world.decide(world.ada, asked)
    User.objects.filter(pk=world.ada.pk).update(is_active=False)
    give_back(world)
    assert not Note.objects.filter(kind="released").exists()


def test_rules_that_need_every_single_person_are_told_before_somebody_is_missing(world: World) -> None:
    """Lesson 13: satisfied today, but not when Ada asks herself."""
    team(world, "risk", world.ada)
    said = rules(review("risk", teams=["risk"]), review("finance"))
    found = simulation.risky(world.amber, load(said))
    assert found == ["Abel Reed", "Ada Stone"]
    members.add_person(world.amber, "cleo", PASSWORD, ["approver"], full_name="Cleo Vane")
    assert simulation.risky(world.amber, load(said)) == ["Ada Stone"]
    teams.add(world.tom, Team.objects.get().id, "cleo")
    assert simulation.risky(world.amber, load(said)) == []


def test_what_waits_in_vain_is_found(world: World) -> None:
    """Point 1: a policy that nobody can meet any more, and the open approvals that lack people."""
    team(world, "risk", world.ada)
    in_force(world, rules(review("risk", teams=["risk"])))
    asked = world.approval(world.ask(world.order()))
    assert stuck.unsatisfiable(world.amber) == [] and stuck.lacking_people(world.amber) == []
    teams.remove(world.tom, Team.objects.get().id, "ada")
    assert "risk review" in stuck.unsatisfiable(world.amber)[0]
    found = stuck.lacking_people(world.amber)
    assert [(one.approval.id, one.lacking) for one in found] == [(asked.id, {"risk": 1})]
    assert stuck.lacking_people(world.birch) == []


def test_escalation_to_others_ends_the_waiting_in_vain(world: World) -> None:
    team(world, "risk", world.ada)
    in_force(world, rules(review("risk", teams=["risk"]), escalate=1, escalate_to={"people": ["abel"]}))
    asked = world.approval(world.ask(world.order()))
    teams.remove(world.tom, Team.objects.get().id, "ada")
    assert len(stuck.lacking_people(world.amber)) == 1
    Approval.objects.filter(pk=asked.pk).update(escalated_at=asked.asked_at, escalate_at=None)
    assert stuck.lacking_people(world.amber) == []
