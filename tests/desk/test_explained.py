"""What a person has explained stays explained: figures that differ stop a payment once, and not for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runtime_app import looks
from runtime_app.desk import verbs
from runtime_app.models import Case, Task
from runtime_app.money import Money
from tests.attack.bent import bend
from tests.desk.conftest import Desk


def test_figures_that_were_explained_let_the_payment_go_on_while_they_stay_exactly_so(desk: Desk) -> None:
    """M03, M24: the provider says a cent less was captured than the order system; and later two."""
    world, missing = desk.world, [1]

    def less(real: Any, *args: Any, **kwargs: Any) -> Any:
        told = real(*args, **kwargs)
        return replace(told, captured=Money(told.captured.minor - missing[0], told.captured.currency))

    order = world.order(10000)
    bend(world, payments={"retrieve_payment": less})
    task = world.ask(order, 1000)
    _explain(desk, desk.case(task, "BALANCE_DISAGREES"))
    world.finish(task)
    assert task.status == "completed" and len(world.effects(order)) == 1

    other = world.ask(order, 1000)
    world.finish(other)
    assert other.status == "completed" and not Case.objects.filter(state="open").exists()

    missing[0] = 2
    third = world.ask(order, 1000)
    assert "99.98" in desk.case(third, "BALANCE_DISAGREES").why and len(world.effects(order)) == 2


def test_a_refund_in_another_currency_that_people_accepted_stops_the_payment_once(desk: Desk) -> None:
    """F29, row 7: found by the drill, where later refunds of the payment were put off without an end."""
    world = desk.world
    world.retime(retry_first=0.01, retry_most=0.02, absent_age=0.0)
    order = world.order(10000)
    world.sandbox.fault("F29", currency="EUR", match={"payment_ref": f"pi_{order}"})
    first = world.ask(order, 1000)
    found = desk.case(first, "CURRENCY_MISMATCH")
    desk.do(verbs.query_now, desk.olga, found)
    desk.answered(found)
    for person in (desk.olga, desk.otto):
        desk.do(verbs.record_as_found, person, found, code="provider_confirms", reason="They wrote so.")
    world.finish(first)
    for _ in range(2):
        second = world.ask(order, 1000)
        case = _disagrees(desk, order, second)
        if case is not None:
            _explain(desk, case)
        world.finish(second)
        assert second.status == "completed"
    assert Case.objects.filter(class_name="BALANCE_DISAGREES").count() == 1


def _disagrees(desk: Desk, order: str, task: Task) -> Case | None:
    """The payment's open case; None when the refund has ended before there was one."""

    def seen() -> Any:
        looks.work(desk.world.ports(), actor="worker:in-test")
        task.refresh_from_db()
        case = Case.objects.filter(class_name="BALANCE_DISAGREES", payment_ref=f"pi_{order}", state="open").first()
        return case or task.status == "completed"

    told = desk.world.until(seen)
    return told if isinstance(told, Case) else None


def _explain(desk: Desk, case: Case) -> None:
    desk.do(verbs.close, desk.olga, case, outcome="explained", reason="The shop rounds, the provider does not.")
