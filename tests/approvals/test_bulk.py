"""Small approvals decided together: frozen as shown, each by the one path, one event each, each result told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from approvals import bulk
from approvals.models import Approval, Bulk, BulkItem, Decision
from runtime_app import members, rows, tasks
from runtime_app.errors import Conflict, FieldErrors, Forbidden, NotFound, PasswordNeeded
from tests.approvals.test_decide import together
from tests.approvals.test_policies import in_force, review, rules
from tests.world import World


def small(world: World, count: int = 3, amount: int = 6000) -> list[Approval]:
    return [world.approval(world.ask(world.order(), amount)) for _ in range(count)]


def ids(asked: list[Approval]) -> list[str]:
    return [str(a.id) for a in asked]


def results(made: Bulk) -> dict[object, str]:
    return {item.approval_id: item.result for item in BulkItem.objects.filter(bulk=made)}


@pytest.fixture
def limit(world: World) -> None:
    in_force(world, rules(review(), bulk_up_to={"USD": 7000}, password_above={"USD": 6500}))


def test_each_is_decided_by_itself_with_one_event(world: World, limit: None) -> None:
    """Issue point 7, lesson 25: the one that was lost is told in words, and the others stand."""
    asked = small(world)
    made = bulk.choose(world.ada, world.amber, ids(asked))
    assert not Decision.objects.exists()
    world.decide(world.abel, asked[1], "reject", "no slip")
    bulk.decide(world.ada, made.id, verdict="approve", reason="slips seen")
    assert results(made) == {asked[0].id: "decided", asked[1].id: "refused", asked[2].id: "decided"}
    assert BulkItem.objects.get(bulk=made, result="refused").said.startswith("Abel Reed decided this first")
    for one in (asked[0], asked[2]):
        assert world.events(one.task).count("approval.granted") == 1
        given = Decision.objects.get(approval=one)
        assert given.basis["channel"] == "bulk" and given.basis["bulk"] == str(made.id)
        assert given.reason == "slips seen"


def test_posting_it_twice_does_nothing_twice(world: World, limit: None) -> None:
    """C14: also at the same moment, and not with another verdict afterwards."""
    asked = small(world)
    made = bulk.choose(world.ada, world.amber, ids(asked))
    together(*[lambda: bulk.decide(world.ada, made.id, verdict="approve", reason="") for _ in range(3)])
    bulk.decide(world.ada, made.id, verdict="approve", reason="")
    assert set(results(made).values()) == {"decided"} and Decision.objects.count() == 3
    with pytest.raises(Conflict, match="otherwise"):
        bulk.decide(world.ada, made.id, verdict="reject", reason="no")


def test_what_was_left_undone_is_done_by_the_same_again(world: World, limit: None) -> None:
    """A crash between two items: the selection goes on with the verdict that was recorded."""
    asked = small(world)
    made = bulk.choose(world.ada, world.amber, ids(asked))
    Bulk.objects.filter(pk=made.pk).update(verdict="approve", decided_at=rows.now())
    bulk.decide(world.ada, made.id, verdict="approve", reason="ignored, since the first reason stands")
    assert Decision.objects.filter(reason="").count() == 3


def test_facts_that_changed_after_it_was_frozen_are_not_agreed_to(world: World, limit: None) -> None:
    """M20, lessons 6 and 7: what was shown is what is agreed to."""
    asked = small(world, 2)
    made = bulk.choose(world.ada, world.amber, ids(asked))
    task = asked[0].task
    tasks.amend(world.rita, task.id, revision=task.revision, amount_minor=6100, reason=None)
    again = world.approval(task)
    bulk.decide(world.ada, made.id, verdict="approve", reason="")
    assert results(made) == {asked[0].id: "refused", asked[1].id: "decided"}
    assert not Decision.objects.filter(approval=again).exists()


def test_what_may_not_be_chosen_is_refused_in_words(world: World, limit: None) -> None:
    """Lesson 28: another tenant's, one's own, too large a one, too many, none, and by somebody without the right."""
    fits, large = small(world, 1)[0], small(world, 1, 7001)[0]
    with pytest.raises(Conflict, match="by itself"):
        bulk.choose(world.ada, world.amber, ids([fits, large]))
    with pytest.raises(NotFound):
        bulk.choose(world.bea, world.birch, ids([fits]))
    with pytest.raises(NotFound):
        bulk.choose(world.ada, world.amber, ["x"])
    with pytest.raises(FieldErrors):
        bulk.choose(world.ada, world.amber, [])
    with pytest.raises(FieldErrors):
        bulk.choose(world.ada, world.amber, ids([fits]) * 51)
    with pytest.raises(Forbidden):
        bulk.choose(world.sam, world.amber, ids([fits]))
    members.add_person(world.amber, "rita", None, ["approver"])
    with pytest.raises(Conflict, match="yourself"):
        bulk.choose(world.rita, world.amber, ids([fits]))
    assert not Bulk.objects.exists()


def test_nobody_decides_the_selection_of_another(world: World, limit: None) -> None:
    """S1: it is not found, and a right that was lost meanwhile is missed."""
    made = bulk.choose(world.ada, world.amber, ids(small(world)))
    for person in (world.abel, world.bea):
        with pytest.raises(NotFound):
            bulk.decide(person, made.id, verdict="approve", reason="")
    with pytest.raises(FieldErrors):
        bulk.decide(world.ada, made.id, verdict="reject", reason=" ")
    with pytest.raises(FieldErrors):
        bulk.decide(world.ada, made.id, verdict="ask_input", reason="which?")
    members.take_role(world.ada, world.amber, "approver")
    with pytest.raises(NotFound):
        bulk.decide(world.ada, made.id, verdict="approve", reason="")
    assert not Decision.objects.exists()


def test_an_amount_that_asks_for_the_password_asks_for_it_before_anything_is_recorded(
    world: World, limit: None
) -> None:
    """S7: one of them is enough; given lately, all go through."""
    asked = [*small(world, 2), *small(world, 1, 6501)]
    made = bulk.choose(world.ada, world.amber, ids(asked))
    with pytest.raises(PasswordNeeded):
        bulk.decide(world.ada, made.id, verdict="approve", reason="")
    with pytest.raises(PasswordNeeded):
        bulk.decide(world.ada, made.id, verdict="approve", reason="", password_at=rows.now() - timedelta(hours=1))
    made.refresh_from_db()
    assert made.decided_at is None and not Decision.objects.exists()
    bulk.decide(world.ada, made.id, verdict="approve", reason="", password_at=rows.now())
    assert set(results(made).values()) == {"decided"}
