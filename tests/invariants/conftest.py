"""One story with a row of every kind, told once for all tests here; each test breaks it and takes the break back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, transaction

from approvals import verbs
from runtime_app import invariants, jobs, tasks
from runtime_app.invariants import Violation
from runtime_app.models import Task, User
from tests.sandbox_process import SandboxProcess
from tests.world import World, empty_tables


@dataclass
class Story:
    """Tasks by what became of them: done, approved, waiting, resent, cancelled, declined, unknown and ready."""

    world: World
    tasks: dict[str, Task]

    def ids(self) -> dict[str, Any]:
        ids: dict[str, Any] = {name: task.id for name, task in self.tasks.items()}
        for name in ("done", "approved", "resent", "cancelled", "declined", "unknown"):
            ids[f"op_{name}"] = self.world.operation(self.tasks[name]).id
        return ids | {"birch": self.world.birch.id, "rita": self.world.rita.pk, "ada": self.world.ada.pk}

    @contextlib.contextmanager
    def broken(self, *statements: str) -> Iterator[None]:
        """These statements are in force within: as a superuser could, past every trigger and foreign key."""
        ids = self.ids()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for statement in statements:
                cursor.execute(statement, ids)
            yield
            transaction.set_rollback(True)

    def ledger(self) -> list[dict[str, Any]]:
        ours = {f"pi_{task.order_ref}" for task in self.tasks.values()}
        return [refund for refund in self.world.sandbox.refunds() if refund["payment_ref"] in ours]


@pytest.fixture(scope="module")
def story(sandbox: SandboxProcess, django_db_setup: None, django_db_blocker: Any) -> Iterator[Story]:
    with django_db_blocker.unblock():
        empty_tables()
        sandbox.clear_faults()
        world = World(sandbox)
        try:
            yield _told(world)
        finally:
            world.close()
            empty_tables()
            connection.close()


def _told(world: World) -> Story:
    User.objects.filter(pk=world.ada.pk).update(email="ada@amber.example")
    done = world.ask(world.order(), 1000)
    approved = world.ask(world.order(), 6000)
    world.decide(world.ada, world.approval(approved))
    declined = _ask(world, 1500, "F21", seconds=0, then="failed")
    resent, cancelled = _ask(world, 2000, "F2"), _ask(world, 2500, "F2")
    world.until(lambda: all("operation.unknown" in world.events(task) for task in (resent, cancelled)))
    tasks.cancel(world.rita, cancelled.id, reason="changed my mind")
    world.clock(seconds=10)  # past the last moment of a send, and past the horizon
    world.finish(done, approved, declined, resent, cancelled, seconds=40)
    waiting = world.ask(world.order(), 7000)
    verbs.comment(world.ada, world.approval(waiting).id, text="I look at it today.")
    world.retime(reconcile_after=[3600])
    unknown = _ask(world, 3000, "F4")
    world.until(lambda: "operation.unknown" in world.events(unknown))
    ready = world.ask(unknown.order_ref, 500)  # its sibling is in doubt, so it stays ready, parked
    world.until(lambda: "task.parked" in world.events(ready))
    jobs.relay()
    told = {"done": done, "approved": approved, "waiting": waiting, "resent": resent, "cancelled": cancelled,
            "declined": declined, "unknown": unknown, "ready": ready}
    return Story(world, told)


def _ask(world: World, amount: int, fault: str, **parameters: Any) -> Task:
    order = world.order()
    world.sandbox.fault(fault, times=1, match={"payment_ref": f"pi_{order}"}, **parameters)
    return world.ask(order, amount)


def names(found: list[Violation]) -> set[str]:
    return {violation.invariant for violation in found}


def check(**against: Any) -> set[str]:
    return names(invariants.check(**against))
