"""Two real processes at the same moment, a hundred rounds each: one outcome, and rows, events and money agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from approvals import policies, rounds
from approvals.models import Approval, Decision, Policy
from runtime_app import tasks
from runtime_app.models import Event, Hold, Operation, Task
from tests.api.web_process import database_url
from tests.approvals import racer
from tests.approvals.racer import Act, Racers
from tests.approvals.test_policies import in_force, review, rules, team
from tests.world import QUICK, World

ROUNDS = 100


@pytest.fixture(scope="module")
def started() -> Iterator[list[Racers]]:
    """The two processes, once they are wanted; they outlive each story's world."""
    found: list[Racers] = []
    with racer.running({"DATABASE_URL": database_url(), "COUNTERSIGN_TIMING": json.dumps(QUICK)}) as both:
        found.append(both)
        yield found


@pytest.fixture
def racers(world: World, request: pytest.FixtureRequest) -> Racers:
    both: list[Racers] = request.getfixturevalue("started")
    return both[0]


def waiting(world: World, amount: int = 6000, *, many: int = ROUNDS, hours_apart: float = 0) -> list[Approval]:
    """So many approvals that wait, each of an order of its own."""
    wanted = []
    for _ in range(many):
        wanted.append(world.ask(world.order(), amount))
        if hours_apart:
            world.work()
            world.clock(hours=hours_apart)
    world.until(lambda: Approval.objects.filter(state="open").count() == many, 60)
    by_task = {a.task_id: a for a in Approval.objects.filter(state="open").select_related("task")}
    return [by_task[task.id] for task in wanted]


def decides(who: str, asked: Approval, verdict: str = "approve", **more: Any) -> Act:
    seen = {"fingerprint": asked.fingerprint, "revision": asked.task.revision, "nonce": f"{who}-{verdict}-{asked.id}"}
    return "decide", {"who": who, "id": str(asked.id), "verdict": verdict, **seen, **more}


def cancels(asked: Approval) -> Act:
    return "cancel", {"who": "rita", "task": str(asked.task_id)}


def settle(world: World, many: int) -> dict[Any, list[int]]:
    """Work until nothing is due; then, by task, what the provider has done."""

    def moving() -> bool:
        return Task.objects.filter(status__in=["queued", "ready", "executing", "reconciling"]).exists()

    world.until(lambda: not moving(), 60)
    moved: dict[Any, list[int]] = {id: [] for id in Task.objects.values_list("id", flat=True)}
    assert len(moved) == many
    sent = {str(op): task for op, task in Operation.objects.values_list("id", "task_id")}
    for refund in world.sandbox.refunds():
        if refund["operation_id"] in sent:
            moved[sent[refund["operation_id"]]].append(refund["amount_minor"])
    return moved


def told(asked: Approval, *types: str) -> list[str]:
    found = Event.objects.filter(task_id=asked.task_id, type__in=types).order_by("seq")
    return list(found.values_list("type", flat=True))


def one_of(pair: tuple[str, str]) -> int:
    """Which of the two won; exactly one has."""
    assert pair.count("done") == 1, pair
    return pair.index("done")


def test_one_person_in_two_tabs_is_one_voice(world: World, racers: Racers) -> None:
    """C14, R11, lesson 1: two forms of one person at once, where two people are asked for."""
    in_force(world, rules(review(quorum=2)))
    asked = waiting(world)
    tabs = [[decides("ada", a, nonce=f"tab-{n}-{a.id}") for a in asked] for n in (1, 2)]
    for pair in racers.race(*tabs):
        one_of(pair)
    assert all(told(a, "approval.granted") == ["approval.granted"] for a in asked)
    assert Decision.objects.count() == ROUNDS and not any(settle(world, ROUNDS).values())


def test_two_people_who_approve_at_once_are_told_who_was_first(world: World, racers: Racers) -> None:
    """C14: one decision, one hold and one effect each."""
    asked = waiting(world)
    pairs = racers.race([decides("ada", a) for a in asked], [decides("abel", a) for a in asked])
    for a, pair in zip(asked, pairs, strict=True):
        first = ("ada", "abel")[one_of(pair)]
        assert "already_decided" in pair and a.decisions.get().person.username == first
    assert all(moved == [6000] for moved in settle(world, ROUNDS).values())
    assert Hold.objects.count() == ROUNDS


def test_approve_and_reject_at_once_move_money_only_when_the_approval_won(world: World, racers: Racers) -> None:
    """C14: exactly one of approved and rejected, in rows and in events."""
    asked = waiting(world)
    pairs = racers.race([decides("ada", a) for a in asked], [decides("abel", a, "reject") for a in asked])
    moved = settle(world, ROUNDS)
    for a, pair in zip(asked, pairs, strict=True):
        won = one_of(pair)
        assert moved[a.task_id] == ([6000], [])[won]
        assert told(a, "approval.granted", "approval.rejected") == [("approval.granted", "approval.rejected")[won]]
        a.refresh_from_db()
        assert a.state == ("approved", "rejected")[won] and a.decisions.count() == 1


def test_nothing_moves_after_a_cancel_that_was_confirmed(world: World, racers: Racers) -> None:
    """C14: approve and cancel at once; a cancel just after the approval is as good as one before."""
    asked = waiting(world)
    pairs = racers.race([decides("ada", a) for a in asked], [cancels(a) for a in asked])
    moved = settle(world, ROUNDS)
    for a, (approved, cancelled) in zip(asked, pairs, strict=True):
        a.task.refresh_from_db()
        assert cancelled == "done" and a.task.status == "cancelled" and moved[a.task_id] == []
        assert a.decisions.count() == (approved == "done")
        assert not Hold.objects.filter(task=a.task, state="active").exists()


def test_approve_and_amend_at_once_have_one_winner(world: World, racers: Racers) -> None:
    """C14, M20: what was amended is asked anew; what was approved first is paid as it was approved."""
    asked = waiting(world)
    amends: list[Act] = [
        ("amend", {"who": "rita", "task": str(a.task_id), "revision": a.task.revision, "amount": 7000}) for a in asked
    ]
    pairs = racers.race([decides("ada", a) for a in asked], amends)
    moved = settle(world, ROUNDS)
    for a, pair in zip(asked, pairs, strict=True):
        assert moved[a.task_id] == ([6000], [])[one_of(pair)]
        shown = Approval.objects.filter(task=a.task, state="open").values_list("facts__amount_minor", flat=True)
        assert list(shown) == ([], [7000])[one_of(pair)]


def test_an_order_that_changes_while_it_is_approved_and_sent_is_paid_as_approved_or_asked_anew(
    world: World, racers: Racers
) -> None:
    """C10, M20: whoever reads the order before the change sends what was agreed; whoever reads it after asks again."""
    asked = waiting(world)
    changes: list[Act] = [
        ("change_order", {"url": world.sandbox.control_url, "order": a.task.order_ref, "destination": "card_2"})
        for a in asked
    ]
    racers.race([decides("ada", a, then_work=True) for a in asked], changes)
    moved = settle(world, ROUNDS)
    for a in asked:
        again = list(Approval.objects.filter(task=a.task, state="open"))
        assert (moved[a.task_id] == [6000]) != bool(again)
        assert all(one.facts["destination"] == "card_2" for one in again)


def test_taking_back_and_the_second_agreement_at_once_never_make_two_of_one(world: World, racers: Racers) -> None:
    """Issue point 4: either it was taken back and one still lacks, or it was too late for that and both stand."""
    in_force(world, rules(review(quorum=2)))
    asked = waiting(world)
    for a in asked:
        world.decide(world.ada, a)
    takes: list[Act] = [("withdraw", {"who": "ada", "id": str(a.id)}) for a in asked]
    pairs = racers.race(takes, [decides("abel", a) for a in asked])
    moved = settle(world, ROUNDS)
    for a, (taken, approved) in zip(asked, pairs, strict=True):
        a.refresh_from_db()
        assert approved == "done"
        standing = a.decisions.filter(withdrawn_at=None).count()
        assert (a.state, standing, moved[a.task_id]) == (
            ("open", 1, []) if taken == "done" else ("approved", 2, [6000])
        )


def test_the_last_agreements_of_two_reviews_at_once_complete_it_once(world: World, racers: Racers) -> None:
    """R11: neither process sees the other's agreement when it begins; together they are enough, and once."""
    team(world, "risk", world.ada)
    team(world, "money", world.abel)
    in_force(world, rules(review("risk", teams=["risk"]), review("money", teams=["money"])))
    asked = waiting(world)
    pairs = racers.race([decides("ada", a) for a in asked], [decides("abel", a) for a in asked])
    assert set(pairs) == {("done", "done")}
    assert all(moved == [6000] for moved in settle(world, ROUNDS).values())
    for a in asked:
        assert told(a, "approval.granted", "hold.taken") == ["approval.granted", "approval.granted", "hold.taken"]


def test_two_who_claim_at_once_have_it_in_one_hand(world: World, racers: Racers) -> None:
    """Issue point 4: the other one is told in whose hand it is."""
    asked = waiting(world)
    claims: list[list[Act]] = [[("claim", {"who": who, "id": str(a.id)}) for a in asked] for who in ("ada", "abel")]
    for a, pair in zip(asked, racers.race(*claims), strict=True):
        a.refresh_from_db()
        assert a.claimed_by is not None and a.claimed_by.username == ("ada", "abel")[one_of(pair)]
        assert told(a, "approval.claimed") == ["approval.claimed"]


def test_a_policy_agreed_to_while_it_is_approved_and_sent_lets_go_only_what_it_allows(
    world: World, racers: Racers
) -> None:
    """M20, M38: what was not handed over before the new version holds is asked anew under it."""
    in_force(world, rules(review()))
    paid = 0
    for number in range(ROUNDS):
        said = rules(review(above={"USD": 5000 + number % 2}))
        proposed = policies.propose(world.tom, world.amber, "refund", said, why="another version")
        task = world.ask(world.order(), 6000)
        asked = world.approval(task)
        agrees: Act = ("agree", {"who": "tessa", "policy": str(proposed.id)})
        (pair,) = racers.race([decides("ada", asked, then_work=True)], [agrees])
        assert pair[1] == "done"
        world.until(partial(_rests, task))
        again = Approval.objects.filter(task=task, state="open").first()
        sent = Operation.objects.filter(task=task, authority__policy_version=asked.policy_version)
        assert bool(world.effects(task.order_ref)) == sent.exists() == (again is None)
        if again is not None:
            assert again.policy_version == proposed.number
            tasks.cancel(world.rita, task.id, reason="the round is over")
        paid += again is None
    assert paid < ROUNDS, "no agreement came before the sending, so that this tested nothing"


def _rests(task: Task) -> bool:
    """Paid, or asked under the version that is in force now."""
    while rounds.work(None, actor="worker:in-test", limit=1):
        pass
    now = Policy.objects.get(state="in_force").number
    asked = Approval.objects.filter(task=task, state="open", policy_version=now).exists()
    return asked or Task.objects.get(pk=task.pk).status == "completed"


def test_the_end_of_the_time_and_a_decision_at_once_are_never_both(world: World, racers: Racers) -> None:
    """C16, lesson 15: the sweep and the post around the very deadline; a recorded answer beats the timeout."""
    in_force(world, rules(review(), term={"kind": "elapsed", "hours": 2 * ROUNDS}))
    asked = waiting(world, hours_apart=1)
    ends: list[Act] = [
        ("expire", {"at": a.deadline_at.isoformat(), "ahead": 0.006 * (n % 20)}) for n, a in enumerate(asked)
    ]
    pairs = racers.race([decides("ada", a) for a in asked], ends)
    moved = settle(world, ROUNDS)
    for a, (approved, _) in zip(asked, pairs, strict=True):
        won = approved == "done"
        assert won or approved in {"expired", "conflict"}, approved
        assert told(a, "approval.granted", "approval.expired") == [("approval.expired", "approval.granted")[won]]
        assert moved[a.task_id] == ([], [6000])[won]
    in_time = Decision.objects.count()
    assert 0 < in_time < ROUNDS, f"{in_time} of {ROUNDS} were in time, so that this tested one side only"
