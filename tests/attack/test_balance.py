"""One remaining amount, whoever reads what at which moment (M03)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import connection

from runtime_app.adapters.orders.types import OrderRefund
from runtime_app.models import Balance, Task
from tests.attack.bent import bend
from tests.world import World


def test_a_sibling_that_finishes_while_the_order_is_read_is_not_counted_twice(world: World) -> None:
    """It is in our balance and in the order's refunds; a task on its second start fails for want of money otherwise."""
    order = world.order(10000)
    task = world.ask(order, 4000)
    Task.objects.filter(id=task.id).update(starts=1)  # put off once before, as by an order system that was away
    other, reads = world.worker("other"), []

    def read(real: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(1)
        if len(reads) == 1:
            world.ask(order, 4000)
            other.run(5.0, lambda: None)
            connection.close()
        return real(*args, **kwargs)

    bend(world, orders={"read_order": read})
    try:
        world.finish(task)
    finally:
        other.close()
    assert task.status == "completed", world.said(task, "task.failed")
    balance = Balance.objects.get(payment_ref=f"pi_{order}")
    assert (balance.refunded_minor, balance.external_minor) == (8000, 0)


def test_a_refund_of_another_system_that_writes_operation_ids_too_is_made_outside_of_us(world: World) -> None:
    """A stranger's id stays a stranger's: it is looked at twice, and then it counts."""
    order = world.order(10000)
    task = world.ask(order, 4000)

    def read(real: Any, *args: Any, **kwargs: Any) -> Any:
        answer = real(*args, **kwargs)
        strange = OrderRefund(3000, "operation-of-another-system")
        return replace(answer, payments=tuple(replace(p, refunds=(*p.refunds, strange)) for p in answer.payments))

    bend(world, orders={"read_order": read})
    world.finish(task)
    assert task.status == "completed" and Balance.objects.get(payment_ref=f"pi_{order}").external_minor == 3000
