"""Two people, or a person and a worker, at the same moment: one of them wins, and the other is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from runtime_app import members, transitions
from runtime_app.chronicle import Say
from runtime_app.desk import verbs
from runtime_app.errors import Conflict, RuntimeAppError
from runtime_app.ledger.cases import OpenCase
from runtime_app.models import Case, Evidence
from runtime_app.states import Status
from runtime_app.transitions import Guard, Transition, apply_one
from tests.desk.conftest import Desk
from tests.desk.test_follow_up import came_back
from tests.desk.test_two_persons import ABSENT
from tests.world import World


def _together(*acts: Callable[[], Any]) -> list[Any]:
    """Do these at the same moment, each on a connection of its own; what each gave or was refused with."""
    start = threading.Barrier(len(acts))
    results: list[Any] = [None] * len(acts)

    def run(index: int, act: Callable[[], Any]) -> None:
        start.wait()
        try:
            results[index] = act()
        except RuntimeAppError as refused:
            results[index] = refused
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def test_two_first_people_at_once_are_one_first_person(desk: Desk) -> None:
    """Both saw an undeclared case; the one who comes second has seen nothing of the other's declaration."""
    _, task, case = desk.absent()
    saw = desk.see(desk.olga, case)

    def declare(person: Any) -> Callable[[], Any]:
        return lambda: desk.do(verbs.declare_not_executed, person, case, saw=saw, **ABSENT)

    results = _together(declare(desk.olga), declare(desk.otto))
    assert sum(isinstance(r, Case) for r in results) == 1 and sum(isinstance(r, Conflict) for r in results) == 1
    task.refresh_from_db()
    assert task.status == "reconciling" and desk.entries(case) == ["declared"]


def test_two_second_people_at_once_end_it_once(desk: Desk, world: World) -> None:
    third = members.add_person(world.amber, "oona", None, ["operator"], full_name="Oona Dale")
    _, task, case = desk.absent()
    desk.do(verbs.declare_not_executed, desk.olga, case, **ABSENT)
    saw = desk.see(desk.otto, case)

    def declare(person: Any) -> Callable[[], Any]:
        return lambda: desk.do(verbs.declare_not_executed, person, case, saw=saw, **ABSENT)

    results = _together(declare(desk.otto), declare(third))
    assert sum(isinstance(r, Case) for r in results) == 1, results
    task.refresh_from_db()
    assert task.status == "failed" and world.events(task).count("operation.not_executed") == 1
    assert desk.entries(case) == ["declared", "declared", "closed"]


def _meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Have this done by somebody else between the next verb's reading and its first lock, once."""
    waiting = [act]

    def at(name: str) -> None:
        if name == "apply.begin" and waiting:
            _together(waiting.pop())

    monkeypatch.setattr(transitions, "point", at)


def test_evidence_that_arrives_while_it_is_declared_stops_it(
    desk: Desk, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read by the second person as absent, and seen as something else before the lock was had: asked again there."""
    _, task, case = desk.absent()
    desk.do(verbs.declare_not_executed, desk.olga, case, **ABSENT)
    operation = world.operation(task)
    _meanwhile(monkeypatch, lambda: Evidence.objects.create(
        tenant=world.amber, operation=operation, kind="provider_query", finding="lookalikes", body_sha256="7" * 64
    ))
    with pytest.raises(Conflict, match="evidence is not what you saw"):
        desk.do(verbs.declare_not_executed, desk.otto, case, **ABSENT)
    task.refresh_from_db()
    assert task.status == "reconciling" and desk.entries(case) == ["declared"]


def test_a_case_that_opens_while_another_is_closed_keeps_its_mark(
    desk: Desk, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is worked out from the other open cases; one that opens meanwhile is not lost."""
    order, task, case = came_back(desk, world)
    task.refresh_from_db()
    disputed = Transition(
        events=(Say("case.opened", {"class": "DISPUTED"}),), columns={"attention": "DISPUTED"}, starts=None,
        parts=(OpenCase("DISPUTED", "stripe", f"pi_{order}", order, world.operation(task).id),),
    )
    guard = Guard(task.id, task.revision, Status(task.status))
    _meanwhile(monkeypatch, lambda: apply_one(guard, disputed, actor="worker:other"))
    saw = desk.see(desk.olga, case)
    with pytest.raises(Conflict, match="evidence is not what you saw"):
        desk.do(verbs.close, desk.olga, case, saw=saw, outcome="written_off", reason="Agreed.")
    desk.do(verbs.close, desk.olga, case, outcome="written_off", reason="Agreed.")
    task.refresh_from_db()
    assert task.attention == "DISPUTED"


def test_the_worker_completes_while_a_person_declares(
    desk: Desk, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The truth arrives between what Otto saw and the lock: nothing is declared over it."""
    order, task, case = desk.absent()
    world.sandbox.fault("F33", match={"payment_ref": f"pi_{order}"}, amount_minor=1000)
    desk.do(verbs.attach, desk.olga, case, ref=world.effects(order)[0]["id"])
    desk.do(verbs.declare_not_executed, desk.olga, case, **ABSENT)
    _meanwhile(monkeypatch, lambda: world.finish(task))
    with pytest.raises(Conflict, match="The system closed it while you were looking"):
        desk.do(verbs.declare_not_executed, desk.otto, case, **ABSENT)
    case.refresh_from_db()
    assert (task.status, case.outcome) == ("completed", "succeeded")
