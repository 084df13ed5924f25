"""How streams hear of new events: PostgreSQL tells them when the transaction commits."""

from __future__ import annotations

import psycopg

from runtime_app import tasks
from runtime_app.births import NewTask, open_tasks
from runtime_app.models import Tenant
from tests.api.web_process import database_url
from tests.world import World


def _new(tenant: Tenant, key: str) -> NewTask:
    return NewTask(
        tenant_id=tenant.id, workflow="refund", workflow_version=1, request_key=key, request_sha256="",
        actor="service:import", order_ref="ORD-1",
    )


def test_a_transaction_gives_one_notice_for_each_tenant_whatever_its_size(world: World) -> None:
    """Notices serialise commits, so there is one a tenant and a transaction, and nothing in it but whose events."""
    with psycopg.connect(database_url(), autocommit=True) as listener:
        listener.execute("LISTEN events")
        many = [_new(world.amber, f"a{n}") for n in range(50)]
        open_tasks([*many, *(_new(world.birch, f"b{n}") for n in range(3))])
        first = [notice.payload for notice in listener.notifies(timeout=20, stop_after=2)]
        tasks.cancel(world.rita, many[0].id, reason="Not this one")
        second = [notice.payload for notice in listener.notifies(timeout=20, stop_after=1)]
        rest = list(listener.notifies(timeout=0))
    assert sorted(first) == sorted([str(world.amber.id), str(world.birch.id)])
    assert second == [str(world.amber.id)] and rest == []


def test_nothing_written_is_nothing_said(world: World) -> None:
    """A request that was there already writes no event."""
    open_tasks([_new(world.amber, "k")])
    with psycopg.connect(database_url(), autocommit=True) as listener:
        listener.execute("LISTEN events")
        assert open_tasks([_new(world.amber, "k")]) == {}
        open_tasks([_new(world.birch, "k")])
        assert [n.payload for n in listener.notifies(timeout=20, stop_after=1)] == [str(world.birch.id)]
