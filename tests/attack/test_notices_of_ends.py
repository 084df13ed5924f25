"""Notices about what counts as ended: none is the last that is heard of money that moved (F36-F41, M23)."""

from __future__ import annotations

from typing import Any

from runtime_app import tasks
from runtime_app.adapters.payments.types import NotSent
from runtime_app.models import Case
from tests.attack.bent import bend
from tests.notices.teller import Teller, event, handled, until
from tests.world import World

QUIET = {"late_watch_every": 86400.0, "retry_first": 0.01, "retry_most": 0.05}


def test_a_notice_of_what_was_proved_not_sent_brings_it_before_a_person(world: World) -> None:
    """Somebody on the way turned the request away when it had arrived, and the task was cancelled as never sent."""
    world.retime(**QUIET | {"retry_first": 30.0, "retry_most": 30.0})
    stripe, order = Teller(world.amber), world.order()

    def arrives(real: Any, *args: Any, **kwargs: Any) -> Any:
        return NotSent("403", real(*args, **kwargs).seen)

    bend(world, payments={"create_refund": arrives})
    task = world.ask(order, 1000)
    world.until(lambda: "operation.not_sent" in world.events(task))
    tasks.cancel(world.rita, task.pk, reason="changed my mind")
    assert world.operation(task).state == "prepared" and len(world.effects(order)) == 1
    stripe.tell(event(operation=world.operation(task).id, refund=str(world.effects(order)[0]["id"])))

    def told() -> bool:
        world.clock(minutes=1)
        return Case.objects.filter(class_name="BALANCE_DISAGREES", payment_ref=f"pi_{order}").exists()

    until(world, told)


def test_a_notice_that_what_had_come_back_went_out_brings_it_before_a_person(world: World) -> None:
    """Row 24 is no end either: the provider says done, then failed, then done."""
    world.retime(**QUIET)
    stripe, order = Teller(world.amber), world.order()
    task = world.ask(order, 1000)
    world.finish(task)
    refund = str(world.effects(order)[0]["id"])
    world.sandbox.set_refund(refund, "failed")
    handled(world, stripe.tell(event(refund, operation=world.operation(task).id, status="failed")))
    until(world, lambda: world.operation(task).state == "returned")
    world.sandbox.set_refund(refund, "succeeded")
    handled(world, stripe.tell(event(refund, operation=world.operation(task).id)))
    until(world, lambda: Case.objects.filter(class_name="BALANCE_DISAGREES").exists())
