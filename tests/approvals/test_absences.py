"""Who is away has a substitute, who gains no right by it and whose word counts once together with the absent one's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals import absences
from approvals.models import Absence, Approval, Decision
from runtime_app import members, rows
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound
from runtime_app.models import User
from tests.approvals.test_policies import in_force, review, rules, team
from tests.world import PASSWORD, World


def away(world: World, person: User, substitute: str, *, by: User | None = None, **when: Any) -> Absence:
    now = rows.now()
    said = {"starts_at": now - timedelta(hours=1), "ends_at": now + timedelta(days=2)} | when
    return absences.enter(by or person, world.amber, person=person, substitute=substitute, **said)


def approver(world: World, username: str, *roles: str) -> User:
    return members.add_person(world.amber, username, PASSWORD, [*roles, "approver"], full_name=username.title())


def refused(world: World, person: User, substitute: str, **more: Any) -> dict[str, str]:
    with pytest.raises(FieldErrors) as why:
        away(world, person, substitute, **more)
    return why.value.errors


def test_nobody_stands_in_for_themselves(world: World) -> None:
    assert "themselves" in refused(world, world.ada, "ada")["substitute"]


def test_a_substitute_has_the_right_to_decide_in_this_tenant(world: World) -> None:
    """Never widening rights: support staff, a requester, a stranger and somebody who left are none."""
    members.add_person(world.amber, "gone", PASSWORD, ["approver"])
    User.objects.filter(username="gone").update(is_active=False)
    for other in ("sam", "rita", "bea", "nobody", "gone", ""):
        assert "may decide approvals" in refused(world, world.ada, other)["substitute"]
    assert not Absence.objects.exists()


def test_circles_and_chains_are_refused_whichever_end_comes_first(world: World) -> None:
    """A for B for A, and A for B for C: a substitute has no substitute, in any order of entering."""
    approver(world, "cleo")
    away(world, world.ada, "abel")
    assert "no substitute" in refused(world, world.abel, "ada")["substitute"]
    assert "stands in" in refused(world, world.abel, "cleo")["starts_at"]
    assert "away in this time" in refused(world, User.objects.get(username="cleo"), "ada")["substitute"]
    assert Absence.objects.count() == 1


def test_a_chain_is_possible_one_after_another(world: World) -> None:
    now = rows.now()
    away(world, world.ada, "abel")
    away(world, world.abel, "ada", starts_at=now + timedelta(days=3), ends_at=now + timedelta(days=4))
    assert Absence.objects.count() == 2


def test_two_absences_of_one_person_do_not_overlap(world: World) -> None:
    approver(world, "cleo")
    first = away(world, world.ada, "abel")
    assert "already" in refused(world, world.ada, "cleo")["starts_at"]
    absences.end(world.ada, first.id)
    away(world, world.ada, "cleo")


def test_times_that_have_passed_turn_back_or_are_too_long_are_refused(world: World) -> None:
    now = rows.now()
    for starts, ends, sentence in (
        (-5.0, -1.0, "passed"), (5.0, 5.0, "after it begins"), (5.0, 4.0, "after it begins"), (0.0, 400.0, "a year"),
    ):
        when = {"starts_at": now + timedelta(days=starts), "ends_at": now + timedelta(days=ends)}
        assert sentence in refused(world, world.ada, "abel", **when)["ends_at"]


def test_people_enter_their_own_absence_and_admins_anybodys_of_their_tenant(world: World) -> None:
    with pytest.raises(Forbidden):
        away(world, world.ada, "abel", by=world.abel)
    with pytest.raises(NotFound):
        away(world, world.ada, "abel", by=world.bea)
    assert "of this tenant" in refused(world, world.bea, "abel", by=world.tom)["person"]
    entered = away(world, world.ada, "abel", by=world.tom)
    assert entered.entered_by == world.tom
    for stranger in (world.abel, world.bea, world.ava):
        with pytest.raises(NotFound):
            absences.end(stranger, entered.id)
    absences.end(world.tom, entered.id)
    with pytest.raises(Conflict, match="ended already"):
        absences.end(world.ada, entered.id)


def test_the_substitute_decides_in_the_place_of_the_absent_and_it_is_said_so(world: World) -> None:
    """Point 5: visible on the decision, in the basis and in the event."""
    team(world, "risk", world.ada)
    in_force(world, rules(review("risk", teams=["risk"])))
    task = world.ask(world.order())
    asked = world.approval(task)
    with pytest.raises(Forbidden, match="asks others"):
        world.decide(world.abel, asked)
    away(world, world.ada, "abel")
    world.decide(world.abel, asked)
    said = Decision.objects.get()
    assert (said.person, said.for_person, said.basis["for"]) == (world.abel, world.ada, "ada")
    assert world.said(task, "approval.granted")["for"] == "ada"
    world.finish(task)
    assert task.status == "completed"


def test_the_absent_one_and_the_substitute_count_once(world: World) -> None:
    """Two must agree, and Ada and her substitute are one of them, whoever speaks first."""
    cleo = approver(world, "cleo")
    team(world, "risk", world.ada, cleo)
    in_force(world, rules(review("risk", quorum=2, teams=["risk"])))
    away(world, world.ada, "abel")
    for first, second in ((world.ada, world.abel), (world.abel, world.ada)):
        asked = world.approval(world.ask(world.order()))
        world.decide(first, asked)
        with pytest.raises((Conflict, Forbidden)):
            world.decide(second, asked)
        assert Approval.objects.get(pk=asked.pk).state == "open" and asked.decisions.count() == 1
        world.decide(cleo, asked)
        assert Approval.objects.get(pk=asked.pk).state == "approved"


def test_a_substitute_decides_nothing_that_either_of_both_asked_for(world: World) -> None:
    """Never to the requester: neither as the substitute, nor as the one who is away."""
    both = members.add_person(world.amber, "dora", PASSWORD, ["requester", "approver"], full_name="Dora Hall")
    team(world, "risk", world.ada, both)
    in_force(world, rules(review("risk", teams=["risk"])))
    away(world, world.ada, "dora")
    own = world.approval(world.ask(world.order(), by=both))
    with pytest.raises(Forbidden, match="asked for this yourself"):
        world.decide(both, own)
    absences.end(world.ada, Absence.objects.get().id)
    away(world, both, "abel")
    with pytest.raises(Forbidden):
        world.decide(world.abel, own)
    assert not Decision.objects.exists()


def test_an_absence_that_has_ended_or_not_begun_gives_nothing(world: World) -> None:
    now = rows.now()
    team(world, "risk", world.ada)
    in_force(world, rules(review("risk", teams=["risk"])))
    asked = world.approval(world.ask(world.order()))
    later = away(world, world.ada, "abel", starts_at=now + timedelta(hours=2), ends_at=now + timedelta(hours=4))
    with pytest.raises(Forbidden):
        world.decide(world.abel, asked)
    world.clock(hours=3)
    assert absences.stood_for(world.abel, world.amber.id) == [later]
    absences.end(world.ada, later.id)
    with pytest.raises(Forbidden):
        world.decide(world.abel, asked)
    world.clock(hours=2)
    assert absences.to_stand_in(world.abel, world.amber) == []


def test_who_left_lends_no_place_and_takes_none(world: World) -> None:
    """The written rule: with the person's right the substitution is gone, though nobody ended the absence."""
    team(world, "risk", world.ada)
    in_force(world, rules(review("risk", teams=["risk"])))
    asked = world.approval(world.ask(world.order()))
    away(world, world.ada, "abel")
    User.objects.filter(pk=world.ada.pk).update(is_active=False)
    with pytest.raises(Forbidden, match="asks others"):
        world.decide(world.abel, asked)


def test_a_vote_for_an_absent_person_who_left_does_not_count_when_money_would_be_sent(world: World) -> None:
    """C20: counted again at execution, on the place it was given for."""
    team(world, "risk", world.ada)
    in_force(world, rules(review("risk", teams=["risk"])))
    order = world.order()
    task = world.ask(order)
    away(world, world.ada, "abel")
    world.decide(world.abel, world.approval(task))
    members.take_role(world.ada, world.amber, "approver")
    world.until(lambda: "approval.superseded" in world.events(task))
    assert world.effects(order) == []


def test_the_times_are_moments_whatever_the_zone(world: World) -> None:
    """Lesson 20: stored in UTC; an absence over the change of the clocks has its true length."""
    starts, ends = datetime(2027, 3, 27, 12, tzinfo=UTC), datetime(2027, 3, 29, 12, tzinfo=UTC)
    kept = away(world, world.ada, "abel", starts_at=starts, ends_at=ends)
    kept.refresh_from_db()
    assert kept.ends_at - kept.starts_at == timedelta(days=2) and kept.starts_at == starts
