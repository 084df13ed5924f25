"""An adapter that breaks its promise never to raise leaves doubt about its own task, and about nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_app.adapters.payments.stripe import StripePayments
from tests.world import World


def test_a_send_that_raises_is_in_doubt_and_its_neighbours_are_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M16: it may have been sent, so it is looked up and never sent again; the rest of the batch goes on."""
    orders = [world.order(5000) for _ in range(3)]
    send = StripePayments.create_refund

    def raising(self: Any, account: Any, request: Any, **how: Any) -> Any:
        result = send(self, account, request, **how)
        if request.payment_ref == f"pi_{orders[1]}":
            raise RuntimeError("the adapter has a bug")
        return result

    monkeypatch.setattr(StripePayments, "create_refund", raising)
    tasks = [world.ask(order, 3000) for order in orders]
    world.finish(*tasks)
    assert [task.status for task in tasks] == ["completed"] * 3
    assert [len(world.effects(order)) for order in orders] == [1, 1, 1]
    assert "operation.unknown" in world.events(tasks[1])
    assert all("operation.unknown" not in world.events(task) for task in (tasks[0], tasks[2]))
