"""Answers that no provider should give: each may hold up its own task only, and never without a mark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime_app import tasks
from runtime_app.adapters.payments.types import Absent
from runtime_app.models import Call, Evidence, Hold, Task
from tests.attack.bent import bend, operation_of
from tests.world import World


def _refund(task: Task, order: str, **other: Any) -> dict[str, Any]:
    return {
        "id": "re_bent", "object": "refund", "amount": task.amount_minor, "currency": "usd", "created": 1_700_000_000,
        "payment_intent": f"pi_{order}", "status": "succeeded", "metadata": {"operation_id": operation_of(task)},
    } | other


def test_a_refusal_with_a_long_reason_is_recorded_as_the_refusal_it_is(world: World) -> None:
    """M23, M25: the provider said no; that its word for it is long does not make the outcome unknown."""
    order = world.order()
    task = world.ask(order, 1000)
    body = _refund(task, order, status="failed", failure_reason="payment_intent_incompatible_payment_method_" * 3)
    world.sandbox.fault("F7", times=1, when="before", body=json.dumps(body), match={"payment_ref": f"pi_{order}"})
    world.work()
    task.refresh_from_db()
    assert task.status == "failed" and Hold.objects.get(task=task).state == "released"
    assert Evidence.objects.get(operation__task=task, kind="provider_response").finding.startswith("payment_intent")


@pytest.mark.parametrize("ref", ["re_" + "x" * 230, "re_\ud800", "re_\x00"], ids=["long", "half-character", "zero"])
def test_an_id_that_cannot_be_stored_makes_its_own_outcome_unknown_and_disturbs_no_neighbour(
    world: World, ref: str
) -> None:
    """One answer of a batch is poison: its neighbours are recorded in the same run, and the truth is asked for."""
    order, other = world.order(), world.order()
    task, neighbour = world.ask(order, 1000), world.ask(other, 1000)
    body = json.dumps(_refund(task, order, id=ref))
    world.sandbox.fault("F7", times=1, when="after", body=body, match={"payment_ref": f"pi_{order}"})
    world.work()
    neighbour.refresh_from_db()
    assert neighbour.status == "completed" and "operation.unknown" in world.events(task)
    world.finish(task)
    assert task.status == "completed" and len(world.effects(order)) == 1


def test_an_outcome_that_the_database_refuses_is_parked_for_a_person_and_not_looked_up_for_ever(world: World) -> None:
    """M25, I2: the provider names one refund for two operations. The second cannot be recorded, and is shown."""
    world.retime(retry_budget=3)
    first_order, order = world.order(), world.order()
    first = world.ask(first_order, 1000)
    world.finish(first)
    task = world.ask(order, 1000)
    taken = world.operation(first).provider_ref
    listed = {"object": "list", "has_more": False, "data": [_refund(task, order, id=taken)]}
    match = {"payment_ref": f"pi_{order}"}
    world.sandbox.fault("F2", times=1, match=match)
    world.sandbox.fault("F7", times=100, on="list", when="before", body=json.dumps(listed), match=match)
    world.until(lambda: Task.objects.get(id=task.id).parked_reason)
    task.refresh_from_db()
    assert (task.status, task.parked_reason) == ("reconciling", "dead_letter") and "IntegrityError" in task.last_error
    assert Hold.objects.get(task=task).state == "held"


def test_an_answer_that_breaks_its_reader_while_reconciling_is_parked_in_the_end(world: World) -> None:
    """M25: a look-up that raises every time is a step with a budget like any other."""

    def raises(real: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a look-up that no reader expected")

    world.retime(retry_budget=3)
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F2", times=1, match={"payment_ref": f"pi_{order}"})
    bend(world, payments={"find_refunds": raises})
    world.until(lambda: Task.objects.get(id=task.id).parked_reason == "dead_letter")
    assert Call.objects.filter(operation__task=task, kind="query").count() <= world.timing.retry_budget + 1


def test_a_resend_that_answers_with_another_refund_is_a_case_and_not_an_absence(world: World) -> None:
    """Row 7: money moved on another payment under our key; a wished cancel does not make that "not executed"."""
    order, other = world.order(), world.order()
    match = {"payment_ref": f"pi_{order}"}
    world.sandbox.fault("F30", times=1, match=match, payment_ref=f"pi_{other}")
    world.sandbox.fault("F4", times=1, match=match)
    task = world.ask(order, 1000)
    world.until(lambda: "operation.resubmitted_same_key" in world.events(task))
    world.until(lambda: Task.objects.get(id=task.id).attention == "PARENT_MISMATCH")
    assert world.operation(task).case_class == "PARENT_MISMATCH"


def test_a_refund_that_the_provider_has_told_us_of_is_not_absent_because_a_list_leaves_it_out(world: World) -> None:
    """Row 16 asks for proof: a list that does not show what was accepted proves nothing, however often it is read."""

    def hides(real: Any, *args: Any, **kwargs: Any) -> Any:
        return Absent(real(*args, **kwargs).seen)

    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F21", times=1, match={"payment_ref": f"pi_{order}"}, seconds=None)
    world.until(lambda: "operation.pending" in world.events(task))
    bend(world, payments={"find_refunds": hides})
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    world.clock(hours=3)
    world.until(lambda: world.events(task).count("operation.checked") > world.timing.absent_count + 1)
    task.refresh_from_db()
    assert task.status == "reconciling" and world.operation(task).state != "not_executed"
