"""What a person may decide now is found for a whole page as `places.place` says it of each."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import absences, places, reach
from approvals.models import Approval
from runtime_app import members, rows, tasks
from runtime_app.models import User
from tests.approvals.test_policies import in_force, review, rules, team
from tests.world import World


def found(person: User, world: World, size: int = 50) -> set[object]:
    return set(reach.find(person, world.amber.id, Approval.objects.all(), size=size).ids)


def test_a_page_is_found_as_each_approval_says_it_itself(world: World) -> None:
    """M21, lesson 27: reviews in order, limits of roles, requesters, those who changed it, votes and substitutes."""
    members.add_person(world.amber, "rita", None, ["approver"])
    stand_in = members.add_person(world.amber, "noor", None, ["approver"], full_name="Noor Vale")
    team(world, "risk", world.ada)
    limited = review("finance", roles=[{"name": "approver", "up_to": {"USD": 7000}}], people=["abel"])
    in_force(world, rules(review("risk", teams=["risk"]), limited, order="in_order"))
    asked = [world.approval(world.ask(world.order(), amount)) for amount in (6000, 7000, 7001, 6500)]
    world.decide(world.ada, asked[1])
    world.decide(world.ada, asked[2])
    changed = asked[3].task
    tasks.amend(world.rita, changed.id, revision=changed.revision, amount_minor=6600, reason=None)
    world.approval(changed)
    now = rows.now()
    absences.enter(world.ada, world.amber, person=world.ada, substitute="noor", starts_at=now,
                   ends_at=now + timedelta(days=2))
    people = (world.rita, world.ada, world.abel, stand_in, world.sam, world.tom, world.bea)
    for person in people:
        alone = {a.id for a in Approval.objects.filter(state="open").select_related("task")
                 if not isinstance(places.place(person, a), str)}
        assert found(person, world) == alone, person.username
    assert [len(found(p, world)) for p in people] == [0, 2, 2, 3, 0, 0, 0]


def test_pages_of_it_meet_each_once_in_order_and_end(world: World) -> None:
    """C48: by position, and the last page says that there is no more."""
    asked = [world.approval(world.ask(world.order(), 6000)) for _ in range(5)]
    met, position = list[object](), None
    for _ in range(3):
        page = reach.find(world.ada, world.amber.id, Approval.objects.all(), size=2, after=position)
        met, position = [*met, *page.ids], page.behind
    assert position is None and set(met) == {a.id for a in asked}
    assert met == list(Approval.objects.order_by("deadline_at", "id").values_list("id", flat=True))


def test_it_reads_a_bounded_number_and_goes_on_from_there(world: World) -> None:
    """Nothing is left out for good: where it stopped reading is where the next page begins."""
    in_force(world, rules(review("risk", people=["abel"], above={"USD": 7000}), review(above={"USD": 5000})))
    for amount in (6000, 6000, 6000, 8000):
        world.approval(world.ask(world.order(), amount))
    world.decide(world.abel, Approval.objects.order_by("deadline_at").select_related("task")[3])
    first = reach.find(world.ada, world.amber.id, Approval.objects.all(), size=5, most=3)
    assert len(first.ids) == 3 and first.behind is not None
    rest = reach.find(world.ada, world.amber.id, Approval.objects.all(), size=5, after=first.behind, most=3)
    assert len(rest.ids) == 1 and rest.behind is None


def test_it_asks_the_database_as_much_for_many_as_for_one(world: World) -> None:
    """Lesson 28."""
    counts = []
    for more in (1, 4):
        for _ in range(more):
            world.approval(world.ask(world.order(), 6000))
        with CaptureQueriesContext(connection) as asked:
            found(world.ada, world)
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 4


def test_what_nobody_could_decide_is_known(world: World) -> None:
    """Lesson 13: when the people are gone after it was asked."""
    asked = world.approval(world.ask(world.order(), 6000))
    seen = list(reach.seen_of([asked.id]).values())
    assert not reach.nobody_could(world.amber.id, seen)
    members.take_role(world.ada, world.amber, "approver")
    assert not reach.nobody_could(world.amber.id, seen)
    members.take_role(world.abel, world.amber, "approver")
    assert reach.nobody_could(world.amber.id, seen) == {asked.id}
