"""A worker dies anywhere between a change and its message: it is told at least once, always under one id."""

from __future__ import annotations

import os
import signal

import pytest
from django.db import connection
from standardwebhooks import Webhook

from approvals import webhooks
from approvals.models import Delivery
from runtime_app import points
from runtime_app.models import Intent
from tests.approvals.telling import receiver, relay, send, tell
from tests.world import World

POINTS = (
    "outbox.claim.commit", "outbox.claim.committed", "telling.expand.commit", "telling.expand.committed",
    "outbox.delivered", "telling.claim.commit", "telling.claim.committed", "hook.post.before", "hook.post.after",
    "telling.sent",
)


def die_at(name: str, world: World) -> int:
    """A process of its own tells what is due, and is killed at this point; how it ended."""
    connection.close()
    child = os.fork()
    if child == 0:
        try:
            points.arm(f"{name}:1:SIGKILL")
            relay()
            send(world)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("name", POINTS)
def test_a_worker_that_dies_leaves_nothing_untold_and_nothing_under_two_ids(world: World, name: str) -> None:
    with receiver() as shop:
        _, secret = webhooks.add_endpoint(world.tom, world.amber, shop.url)
        approval = world.approval(world.ask(world.order()))
        assert die_at(name, world) == -signal.SIGKILL
        heard = len(shop.got)
        assert heard == (1 if name in {"hook.post.after", "telling.sent"} else 0)
        world.clock(minutes=5)
        tell(world)
        delivery = Delivery.objects.get()
        assert (delivery.state, len(shop.got)) == ("sent", heard + 1)
        assert {headers["webhook-id"] for _, headers, _ in shop.got} == {str(delivery.id)}
        for _, headers, body in shop.got:
            assert Webhook(secret).verify(body, headers)["data"]["approval_id"] == str(approval.id)
        assert not Intent.objects.filter(done_at=None).exists()
        world.clock(hours=1)
        tell(world)
        assert len(shop.got) == heard + 1
