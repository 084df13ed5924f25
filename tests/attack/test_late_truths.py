"""What turns up after a proof: counted as what it is, whatever came before it and in whichever order (M11, I8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from runtime_app import tasks, watch
from runtime_app.adapters.payments.types import Absent, Found, ProviderRefund, RefundStatus
from runtime_app.ledger import cases
from runtime_app.ledger.cases import OpenCase
from runtime_app.models import Balance, Case, Hold, Intent, Task
from runtime_app.money import Money
from runtime_app.states import Status
from runtime_app.transitions import Guard, Transition, apply_one
from runtime_app.workflows.types import Ports
from tests.attack.bent import Bent
from tests.notices.teller import now, status
from tests.world import World

QUIET = {"late_watch_every": 86400.0, "resend_most": 0}


def _bent(world: World, **bends: Any) -> Ports:
    ports = world.ports()
    return replace(ports, providers={"stripe": Bent(ports.providers["stripe"], **bends)})


def _look(world: World, task: Task, ports: Ports | None = None) -> None:
    assert watch.hint(world.operation(task).id)
    ports = ports or world.ports()
    while watch.is_anything_due():
        watch.watch(ports, actor="worker:in-test", limit=1)


def _balance(order: str) -> tuple[int, int]:
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    return balance.refunded_minor, balance.excess_minor


def _duplicated(world: World, captured: int = 10_000) -> tuple[str, Task]:
    """A refund that the provider executed twice, as a look has shown."""
    world.retime(**QUIET)
    order = world.order(captured)
    world.sandbox.fault("F32", times=1, match={"payment_ref": f"pi_{order}"})
    task = world.ask(order, 1000)
    world.finish(task)
    _look(world, task)
    assert _balance(order)[0] == 2000
    return order, task


def _not_executed(world: World) -> tuple[str, Task]:
    world.retime(**QUIET)
    order = world.order()
    task = world.ask(order, 1000)
    world.sandbox.fault("F2", times=1, match={"payment_ref": f"pi_{order}"})
    world.until(lambda: "operation.unknown" in world.events(task))
    tasks.cancel(world.rita, task.id, reason="changed my mind")
    world.finish(task, seconds=30)
    assert world.operation(task).state == "not_executed"
    return order, task


def _close(case: Case) -> None:
    with transaction.atomic():
        assert cases.close(case.id, tenant_id=case.tenant_id, outcome="recovered", actor="olga", now=now())


def test_an_excess_that_comes_back_may_be_refunded_again(world: World) -> None:
    """Row 8, F32: somebody has the second one taken back. The balance says so, and the payment is usable again."""
    order, task = _duplicated(world, 2500)
    world.sandbox.set_refund(str(world.effects(order)[1]["id"]), "failed")
    _look(world, task)
    _look(world, task)
    assert _balance(order) == (1000, 0)
    assert sorted(Hold.objects.filter(task=task).values_list("state", flat=True)) == ["consumed", "returned"]
    assert world.events(task).count("operation.excess_returned") == 1
    _close(Case.objects.get())
    other = world.ask(order, 1500)
    world.finish(other)
    assert status(other) == "completed" and _balance(order) == (2500, 0)


def test_what_came_back_and_then_the_rest_counts_as_nothing(world: World) -> None:
    """Rows 8 and 24 after each other."""
    order, task = _duplicated(world)
    for refund in world.effects(order):
        world.sandbox.set_refund(str(refund["id"]), "failed")
        _look(world, task)
    assert _balance(order) == (0, 0) and world.operation(task).state == "returned"


def test_a_third_execution_is_booked_although_the_case_of_the_second_is_open(world: World) -> None:
    """Row 8: what a person is looking at does not keep the counters from following the money."""
    order, task = _duplicated(world)

    def third(real: Any, *args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, refunds=(*found.refunds, replace(found.refunds[0], ref="re_third")))

    _look(world, task, _bent(world, find_refunds=third))
    assert _balance(order)[0] == 3000 and Case.objects.count() == 1


def test_a_refund_that_a_person_has_named_is_watched_by_the_name_that_the_provider_gave_it(world: World) -> None:
    """Row 24, F31: it does not carry our reference, so that only its own shows that it came back."""
    world.retime(**QUIET)
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    world.sandbox.set_refund(str(world.effects(order)[0]["id"]), "failed")

    def nameless(real: Any, *args: Any, **kwargs: Any) -> Any:
        return Absent(real(*args, **kwargs).seen)

    _look(world, task, _bent(world, find_refunds=nameless))
    assert world.operation(task).state == "returned" and _balance(order) == (0, 0)


def test_what_failed_with_another_amount_came_back_all_the_same(world: World) -> None:
    """Row 24: people have accepted another amount as what happened, and now that is returned."""
    world.retime(**QUIET)
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)

    def other(real: Any, *args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        one = replace(found.refunds[0], amount=Money(900, "USD"), status=RefundStatus.FAILED)
        return replace(found, refunds=(one,))

    _look(world, task, _bent(world, find_refunds=other))
    assert world.operation(task).state == "returned"


@pytest.mark.parametrize(("found", "state", "told"), [
    ("failed", "not_executed", []), ("pending", "not_executed", ["LATE_EXECUTION"]),
    ("elsewhere", "succeeded", ["LATE_EXECUTION"]),
])
def test_a_late_refund_that_differs_counts_for_what_moved_of_this_payment(
    world: World, found: str, state: str, told: list[str]
) -> None:
    """Row 23: with another amount and failed it is nothing; pending it is accepted; of another payment it is a case
    and no money of this one, and the order system is not told that there was."""
    order, task = _not_executed(world)
    operation = world.operation(task)
    minor = 1000 if found == "elsewhere" else 900
    word = RefundStatus.SUCCEEDED if found == "elsewhere" else RefundStatus(found)
    payment = "pi_of_somebody" if found == "elsewhere" else f"pi_{order}"

    def finds(real: Any, *args: Any, **kwargs: Any) -> Any:
        seen = real(*args, **kwargs).seen
        return Found((ProviderRefund("re_late", str(operation.id), payment, Money(minor, "USD"), word),), seen)

    _look(world, task, _bent(world, find_refunds=finds))
    operation.refresh_from_db()
    assert (operation.state, [c.class_name for c in Case.objects.all()]) == (state, told)
    assert _balance(order) == (0, 0) and not Intent.objects.exists()


def test_a_look_that_raises_does_not_end_the_round(world: World) -> None:
    """M25: the next one is looked at, and this one again later."""
    world.retime(**QUIET)
    done = []
    for _ in range(2):
        done.append(world.ask(world.order(), 1000))
    world.finish(*done)
    poison, other = world.operation(done[0]), world.operation(done[1])
    world.sandbox.set_refund(str(world.effects(done[1].order_ref)[0]["id"]), "failed")

    def raises(real: Any, *args: Any, operation_id: Any, **kwargs: Any) -> Any:
        if operation_id == poison.id:
            raise RuntimeError("an answer that no reader expected")
        return real(*args, operation_id=operation_id, **kwargs)

    assert watch.hint(poison.id) and watch.hint(other.id)
    assert watch.watch(_bent(world, find_refunds=raises), actor="worker:in-test", limit=2) == 2
    other.refresh_from_db()
    poison.refresh_from_db()
    assert other.state == "returned" and poison.next_check_at is not None


def test_a_late_truth_hides_no_graver_case_of_its_task(world: World) -> None:
    """Row 24: the mark of a task is the gravest of its open cases, whichever was opened last."""
    order = world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    operation = world.operation(task)
    case = OpenCase("STATUS_CONFLICT", "stripe", f"pi_{order}", order, operation.id, matter=f"a line of {order}")
    guard = Guard(task.id, task.revision, Status(task.status))
    apply_one(guard, Transition(parts=(case,), columns={"attention": "STATUS_CONFLICT"}, starts=None), actor="in-test")
    world.sandbox.set_refund(world.effects(order)[0]["id"], "failed")
    assert watch.hint(operation.id)
    world.until(lambda: watch.watch(world.ports(), actor="in-test"))
    task.refresh_from_db()
    assert world.operation(task).state == "returned" and task.attention == "STATUS_CONFLICT"
