"""Whose word counts, and until when."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from approvals.models import Approval
from runtime_app import clock, members, tasks
from runtime_app.errors import Forbidden
from runtime_app.models import Tenant
from tests.attack.bent import bend
from tests.world import World


def _while_the_order_is_read(world: World, what: Any) -> None:
    """Let `what` happen while a ready task's order is read, that is after its facts were read from the database."""
    reads = []

    def read(real: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(1)
        if len(reads) == 1:
            what()
            connection.close()  # this is a thread of the worker, which has no connection of its own
        return real(*args, **kwargs)

    bend(world, orders={"read_order": read})


def test_an_approval_whose_giver_loses_the_right_while_the_order_is_read_does_not_count(world: World) -> None:
    """M21, C20a: authority is judged where the request is handed over, not where a slow step began."""
    order = world.order()
    task = world.ask(order, 6000)
    world.decide(world.ada, world.approval(task))
    _while_the_order_is_read(world, lambda: members.take_role(world.ada, world.amber, "approver"))
    world.until(lambda: Approval.objects.filter(task=task, state="open").exists() or world.effects(order))
    assert world.effects(order) == [] and "approval.superseded" in world.events(task)


def test_a_tenant_suspended_while_the_order_is_read_sends_nothing(world: World) -> None:
    """C20d: suspended means from now on."""
    order = world.order()
    task = world.ask(order, 1000)
    reads = []

    def read(real: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(1)
        if len(reads) == 2:
            Tenant.objects.filter(id=world.amber.id).update(suspended_at="2026-01-01T00:00Z")
            connection.close()
        return real(*args, **kwargs)

    bend(world, orders={"read_order": read})
    world.until(lambda: "task.parked" in world.events(task) or world.effects(order))
    assert world.effects(order) == []


def test_a_rule_that_becomes_stricter_while_the_order_is_read_is_obeyed(world: World) -> None:
    """M20: what needed nobody a moment ago needs somebody now."""
    order = world.order()
    task = world.ask(order, 1000)
    reads = []

    def read(real: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(1)
        if len(reads) == 2:
            Tenant.objects.filter(id=world.amber.id).update(approval_threshold_minor=500)
            connection.close()
        return real(*args, **kwargs)

    bend(world, orders={"read_order": read})
    world.until(lambda: Approval.objects.filter(task=task, state="open").exists() or world.effects(order))
    assert world.effects(order) == []


def test_whoever_changed_the_amount_does_not_approve_it(world: World) -> None:
    """I10, four eyes: the amount is the amender's wish, so somebody else must agree to it."""
    members.add_person(world.amber, "ada", None, ["requester"])
    order = world.order()
    task = world.ask(order, 5500)
    asked = world.approval(task)
    tasks.amend(world.ada, task.id, revision=asked.task.revision, amount_minor=9500, reason=None)
    again = world.approval(task)
    with pytest.raises(Forbidden):
        world.decide(world.ada, again)
    world.decide(world.abel, again)
    world.finish(task)
    assert task.status == "completed"


def test_whoever_supplied_the_amount_does_not_approve_it(world: World) -> None:
    """I10: the same for a request that came without an amount."""
    members.add_person(world.amber, "ada", None, ["requester"])
    task = world.ask(world.order(), None)
    world.until(lambda: world.events(task)[-1] == "task.waiting_input")
    task.refresh_from_db()
    tasks.supply_input(world.ada, task.id, revision=task.revision, fields={"amount_minor": 9500})
    with pytest.raises(Forbidden):
        world.decide(world.ada, world.approval(task))


def test_a_task_parked_for_its_suspended_tenant_goes_on_when_the_tenant_does(world: World) -> None:
    """Rule 8: a mark goes when its reason goes."""
    Tenant.objects.filter(id=world.amber.id).update(suspended_at="2026-01-01T00:00Z")
    task = world.ask(world.order(), 1000)
    world.until(lambda: "task.parked" in world.events(task))
    clock.tick()
    task.refresh_from_db()
    assert task.parked_reason == "tenant_suspended"
    Tenant.objects.filter(id=world.amber.id).update(suspended_at=None)
    clock.tick()
    world.finish(task)
    assert task.status == "completed"
