"""Looks through the drain and the database: at the account's pace, and not at all while its provider is away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from runtime_app import rows
from runtime_app.ledger.pace import AtPace, Grant
from runtime_app.models import Account, AccountPace, Attempt, Call, Case, Evidence, Operation, Task
from runtime_app.reconciliation.pace import GOOD, Heard
from runtime_app.states import Status
from runtime_app.timing import Timing
from runtime_app.transitions import After, Applied, Guard, Refused, Result, Transition, Wanted, apply
from tests.pace.doubt import in_doubt, last_request, pace_of, requests_since
from tests.world import World

TIMING = Timing().with_values({"look_rate": 1, "look_burst": 20, "look_abreast": 100})
TROUBLE = Heard(trouble=True)


def ask(world: World, costs: list[float], timing: Timing = TIMING) -> list[Result]:
    """One batch of tasks, each wanting leave for so many requests."""
    return apply([_wanted(world, AtPace("stripe", timing, Grant(), cost=cost)) for cost in costs])


def tell(world: World, *heard: Heard, grant: Grant | None = None) -> None:
    parts = [AtPace("stripe", TIMING, grant or Grant(troubled=True), heard=one, sweeps=True) for one in heard]
    assert all(isinstance(result, Applied) for result in apply([_wanted(world, part) for part in parts]))


def _wanted(world: World, *parts: AtPace) -> Wanted:
    task = world.ask(f"ORD-{uuid4().hex[:10]}", 1000)
    guard = Guard(task.id, task.revision, Status(task.status))
    return Wanted(guard, Transition(due=After(10**6), parts=parts), "test")


def test_a_batch_is_granted_so_many_as_its_bucket_holds_and_the_others_are_told_when_to_come(world: World) -> None:
    """money.md 3.4: one row an account, made when it is first needed."""
    assert not AccountPace.objects.exists()
    results = ask(world, [2.0] * 14)
    assert Counter(type(r) for r in results) == {Applied: 10, Refused: 4}
    told = [r.refusal for r in results if isinstance(r, Refused)]
    assert {r.code for r in told} == {"paced"} and all(r.facts["seconds"] > 0 for r in told)
    assert [isinstance(r, Refused) for r in ask(world, [2.0])] == [True]
    world.clock(seconds=3)
    assert [isinstance(r, Applied) for r in ask(world, [2.0, 2.0])] == [True, False]


def test_while_all_is_well_a_batch_of_looks_costs_one_statement_more_and_its_answers_none(world: World) -> None:
    """The plain path: the same for one look and for many."""
    ask(world, [1.0])

    def statements(*parts: AtPace) -> int:
        wanted = [_wanted(world, part) for part in parts] or [_wanted(world)]
        with counted() as seen:
            assert all(isinstance(result, Applied) for result in apply(wanted))
        return len(seen)

    none = statements()
    assert statements(*[AtPace("stripe", TIMING, Grant(), cost=1.0) for _ in range(4)]) == none + 1
    assert statements(*[AtPace("stripe", TIMING, Grant(), heard=GOOD, sweeps=True) for _ in range(4)]) == none


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements that are run inside."""
    real, seen = rows.run, list[str]()

    def run(query: str, params: Any = ()) -> Any:
        seen.append(query)
        return real(query, params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "run", run)
        yield seen


def test_one_accounts_trouble_is_nobody_elses(world: World) -> None:
    """M23: neither another tenant's nor another account's of the same tenant."""
    tell(world, *[TROUBLE] * 5)
    assert pace_of(world).closed_until is not None
    Account.objects.create(tenant=world.amber, ref="second", provider="stripe")
    wanted = [_wanted(world, AtPace(account, TIMING, Grant(), cost=2.0)) for account in ("stripe", "second")]
    assert [type(result) for result in apply(wanted)] == [Refused, Applied]
    assert not AccountPace.objects.filter(account__tenant=world.birch).exists()


def test_a_send_that_is_told_to_wait_closes_the_account_for_looks_too(world: World) -> None:
    """F12 on a first send: the Retry-After counts for looks at the account; the send itself is tried again."""
    world.retime(retry_first=60)
    order = world.order()
    world.sandbox.fault("F12", times=1, on="create", match={"payment_ref": f"pi_{order}"}, retry_after=70)
    task = world.ask(order, 1000)
    world.until(lambda: "operation.not_sent" in world.events(task))
    closed = pace_of(world).closed_until
    now = rows.run("SELECT runtime_now()")[0][0]
    assert closed is not None and timedelta(seconds=50) < closed - now <= timedelta(seconds=70)


def test_an_account_that_does_not_answer_is_closed_and_what_is_not_asked_proves_nothing(world: World) -> None:
    """F27, M23: five looks fail; the others are neither made, nor counted, nor evidence, and use up no start."""
    asked = in_doubt(world, F2=20)
    world.retime(look_troubles=5, closed_first=600, closed_most=900, look_abreast=2, absent_age=0, retry_budget=3)
    world.sandbox.fault("F27", times=None, on="list")
    before, evidence = last_request(world), Evidence.objects.count()
    world.clock(hours=2)
    world.until(lambda: pace_of(world).closed_until is not None)
    for _ in range(6):  # whatever wakes them, and more often than a task may start without progress
        rows.run("UPDATE runtime_app_task SET due_at = runtime_now() WHERE lease_owner IS NULL")
        world.work()
    made = len(requests_since(world, before))
    assert 5 <= made <= 8
    assert Evidence.objects.count() - evidence == made == Call.objects.filter(kind="query").count()
    assert sum(Operation.objects.values_list("checks", flat=True)) == made
    assert set(Task.objects.values_list("parked_reason", "status")) == {(None, "reconciling")}
    assert not Case.objects.exists() and Attempt.objects.count() > made + len(asked)


def test_when_the_time_is_over_one_goes_first_and_its_good_answer_lets_the_others_follow(world: World) -> None:
    """Half open: while it is away one question at a time is asked; then all end by themselves."""
    asked = in_doubt(world, F4=8)
    world.retime(look_troubles=3, closed_first=600, closed_most=900, look_abreast=3)
    fault = world.sandbox.fault("F50", seconds=10**6)
    world.clock(hours=2)
    world.until(lambda: pace_of(world).closed_until is not None)
    before = last_request(world)
    for _ in range(3):
        world.clock(seconds=1300)
        sent = len(requests_since(world, before))
        world.until(partial(more_than, world, before, sent))
        world.work()
        assert len(requests_since(world, before)) == sent + 1
    world.sandbox.control("DELETE", f"/faults/{fault['id']}")
    world.clock(seconds=1300)
    world.until(lambda: pace_of(world).closed_until is None)
    world.clock(hours=3)
    world.finish(*asked)
    assert {t.status for t in asked} == {"completed"}


def test_looks_are_closed_for_as_long_as_a_429_says(world: World) -> None:
    """F12 on the look itself."""
    in_doubt(world, F4=1)
    world.sandbox.fault("F12", times=1, on="list", retry_after=900)
    world.clock(hours=2)
    world.until(lambda: AccountPace.objects.filter(closed_until__isnull=False).exists())
    before = last_request(world)
    world.clock(seconds=800)
    world.work()
    assert not requests_since(world, before)
    world.clock(seconds=500)
    world.until(lambda: Task.objects.filter(status="completed").count() == 1)


def test_whoever_could_not_be_asked_about_for_a_day_becomes_a_persons_without_a_look(world: World) -> None:
    """Row 20: a closed account must not hide the ones that are never looked at from people."""
    asked = in_doubt(world, F4=3)
    tell(world, *[TROUBLE] * 5)
    world.clock(hours=30)
    AccountPace.objects.update(closed_until=_now() + timedelta(hours=1))
    before = last_request(world)
    world.until(lambda: Case.objects.filter(class_name="LOOKUP_UNAVAILABLE").count() == 3)
    for task in asked:
        task.refresh_from_db()
        assert (task.status, task.attention) == ("reconciling", "LOOKUP_UNAVAILABLE")
        assert world.events(task).count("case.opened") == 1
    world.clock(seconds=300)
    world.work()
    assert Case.objects.count() == 3 and not requests_since(world, before)


def more_than(world: World, before: int, sent: int) -> bool:
    return len(requests_since(world, before)) > sent


def _now() -> Any:
    return rows.run("SELECT runtime_now()")[0][0]
