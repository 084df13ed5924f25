"""A policy says who must agree; one admin proposes a version, another one agrees to it, and it holds from then on."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import policies, rounds
from approvals.models import Approval, Policy, Team, TeamMember
from runtime_app import members
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound
from runtime_app.models import Task, User
from tests.world import PASSWORD, World

WEEK = {"kind": "elapsed", "hours": 168}


def rules(*reviews: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"reviews": list(reviews), "term": WEEK} | more


def review(
    name: str = "finance", *, above: dict[str, int] | None = None, quorum: int = 1, **who: Any
) -> dict[str, Any]:
    """A review of everybody in the role approver, unless `who` says otherwise."""
    said = who or {"roles": [{"name": "approver"}]}
    return {"name": name, "who": said, "quorum": quorum, "above": above or {"*": 5000}}


def in_force(world: World, said: dict[str, Any]) -> Policy:
    """Proposed by Tom and agreed to by a second admin."""
    second = members.add_person(world.amber, "tessa", PASSWORD, ["tenant_admin"], full_name="Tessa Moor")
    proposed = policies.propose(world.tom, world.amber, "refund", said, why="as decided by the board")
    return policies.agree(second, proposed.id)


def team(world: World, ref: str, *people: User) -> None:
    made = Team.objects.create(tenant=world.amber, ref=ref)
    for person in people:
        TeamMember.objects.create(team=made, person=person)


def test_nobody_puts_a_policy_in_force_alone(world: World) -> None:
    """M38, S7: four eyes also for the rules about four eyes; and approvers, auditors and strangers change none."""
    proposed = policies.propose(world.tom, world.amber, "refund", rules(review()), why="new limit")
    with pytest.raises(Forbidden, match="another admin"):
        policies.agree(world.tom, proposed.id)
    for person in (world.ada, world.ava, world.olga):
        with pytest.raises(Forbidden):
            policies.agree(person, proposed.id)
        with pytest.raises(Forbidden):
            policies.propose(person, world.amber, "refund", rules(review()), why="mine")
    with pytest.raises(NotFound):
        policies.agree(world.bea, proposed.id)
    assert Policy.objects.get().state == "proposed"


def test_one_change_waits_at_a_time_and_is_decided_once(world: World) -> None:
    proposed = policies.propose(world.tom, world.amber, "refund", rules(review()), why="new limit")
    with pytest.raises(Conflict, match="waits for agreement"):
        policies.propose(world.tom, world.amber, "refund", rules(review()), why="another")
    policies.refuse(world.tom, proposed.id, why="")
    assert Policy.objects.get().state == "withdrawn"
    with pytest.raises(Conflict, match="withdrawn already"):
        policies.agree(world.tom, proposed.id)
    assert in_force(world, rules(review())).number == 3


def test_the_policy_in_force_asks_whom_it_names(world: World) -> None:
    """M38: the team risk up to any amount, and only two of it together."""
    team(world, "risk", world.ada, world.abel)
    in_force(world, rules(review("risk", above={"USD": 3000}, quorum=2, teams=["risk"])))
    small, large = world.ask(world.order(), 3000), world.ask(world.order(), 3001)
    world.finish(small)
    asked = world.approval(large)
    assert (asked.quorum, asked.policy_version) == (2, 2) and small.status == "completed"
    world.decide(world.ada, asked)
    assert Task.objects.get(pk=large.pk).status == "waiting_approval"
    world.decide(world.abel, asked)
    world.finish(large)
    assert large.status == "completed"


def test_reviews_in_order_are_asked_one_after_another(world: World) -> None:
    """M38: risk before finance; who is early is told so, and nothing is recorded."""
    team(world, "risk", world.ada)
    team(world, "finance", world.abel)
    in_force(world, rules(review("risk", teams=["risk"]), review("finance", teams=["finance"]), order="in_order"))
    asked = world.approval(world.ask(world.order()))
    with pytest.raises(Forbidden, match="not open now"):
        world.decide(world.abel, asked)
    world.decide(world.ada, asked)
    world.decide(world.abel, asked)
    assert Approval.objects.get(pk=asked.pk).state == "approved"
    assert list(asked.decisions.order_by("decided_at").values_list("review", flat=True)) == ["risk", "finance"]


def test_one_person_is_one_voice_in_all_reviews(world: World) -> None:
    """Done when: distinct people. Ada is in both teams, and gives one of the two agreements."""
    team(world, "risk", world.ada)
    team(world, "finance", world.ada, world.abel)
    in_force(world, rules(review("risk", teams=["risk"]), review("finance", teams=["finance"])))
    asked = world.approval(world.ask(world.order()))
    world.decide(world.ada, asked)
    with pytest.raises(Conflict):
        world.decide(world.ada, asked)
    assert Approval.objects.get(pk=asked.pk).state == "open"
    world.decide(world.abel, asked)
    assert Approval.objects.get(pk=asked.pk).state == "approved"


@pytest.mark.parametrize(("said", "place"), [
    (rules(review(quorum=3)), "reviews.0.quorum"),
    (rules(review("risk", people=["ada"]), review("finance", people=["ada"])), "reviews.1.quorum"),
    (rules(review(roles=[{"name": "approver", "up_to": {"USD": 9000}}])), "reviews.0.quorum"),
    (rules(review(teams=["nobody"])), "reviews.0.who.teams.0"),
    (rules(review(people=["bea"])), "reviews.0.who.people.0"),
    (rules(review(roles=[])), "reviews.0.who"),
    (rules(review(), review()), "reviews.1.name"),
    (rules(review(), term={"kind": "elapsed", "hours": 0}), "term.hours"),
    (rules(review(), order="any"), "order"),
    (rules(review(), more=1), "rules.more"),
    (rules(review(above={"usd": 1})), "reviews.0.above.usd"),
    (rules(review(above={"USD": True})), "reviews.0.above.USD"),
    (rules(review(quorum=0)), "reviews.0.quorum"),
    (rules(), "reviews"),
    (rules(review(), escalate=4), "escalate_to"),
    ("nothing", "rules"),
], ids=str)
def test_what_nobody_could_satisfy_is_refused_beside_its_place(world: World, said: Any, place: str) -> None:
    """Lesson 13: a gate that nobody can pass is reported when it is built."""
    with pytest.raises(FieldErrors) as refused:
        policies.propose(world.tom, world.amber, "refund", said, why="try")
    assert place in refused.value.errors, refused.value.errors
    assert not Policy.objects.exists()


def test_a_new_policy_asks_anew_what_is_open_under_the_old_one(world: World) -> None:
    """M20: the policy's version is a material fact; nobody is asked to agree to what will not count."""
    task = world.ask(world.order())
    before = world.approval(task)
    in_force(world, rules(review(above={"USD": 7000})))
    assert rounds.is_anything_due()
    while rounds.work(None, actor="worker:in-test", limit=1):
        pass
    assert not rounds.is_anything_due()
    before.refresh_from_db()
    assert before.state == "superseded" and "Version 2" in before.closed_why
    world.finish(task)
    assert task.status == "completed", "it needs nobody under the new policy"


def test_a_lowered_limit_of_a_role_counts_at_execution(world: World) -> None:
    """C20 c: approved within the limit, which is lowered before the request is sent; nothing is sent."""
    in_force(world, rules(review(roles=[{"name": "approver", "up_to": {}}])))
    order = world.order()
    task = world.ask(order, 6000)
    world.decide(world.ada, world.approval(task))
    said = rules(review(roles=[{"name": "approver", "up_to": {"USD": 5500}}], people=["abel"]))
    proposed = policies.propose(world.tom, world.amber, "refund", said, why="lower")
    policies.agree(User.objects.get(username="tessa"), proposed.id)
    world.until(lambda: Approval.objects.filter(task=task, state="open").exists())
    assert world.effects(order) == [] and "approval.superseded" in world.events(task)


def test_what_the_policy_forbids_is_rejected_with_the_reason(world: World) -> None:
    in_force(world, rules(review(), forbidden_above={"USD": 8000}))
    task = world.ask(world.order(), 8001)
    world.finish(task)
    assert task.status == "rejected" and "80.00 USD" in world.said(task, "task.rejected")["why"]
