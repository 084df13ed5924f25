"""Many outcomes in doubt at once, and what the provider was asked about them."""

from __future__ import annotations

from typing import Any

from runtime_app import rows
from runtime_app.models import Account, AccountPace, Operation, Task, Tenant
from tests.world import World


def in_doubt(world: World, **faults: int) -> list[Task]:
    """So many refunds for each fault, sent and met by it, none of them looked at yet: in_doubt(world, F4=3, F2=2)."""
    world.retime(reconcile_after=[3600], read_timeout=5.0, lease=30.0, sweep_margin=2.0)  # not into other tests' times
    asked: list[Task] = []
    for fault, many in faults.items():
        for _ in range(many):
            order = world.order()
            world.sandbox.fault(fault, times=1, on="create", match={"payment_ref": f"pi_{order}"})
            asked.append(world.ask(order, 1000))
    world.until(lambda: Operation.objects.filter(state__in=["unknown", "pending"]).count() == len(asked), 60)
    return asked


def pace_of(world: World, tenant: Tenant | None = None) -> AccountPace:
    """The row of the tenant's account, Amber's unless said otherwise."""
    return AccountPace.objects.get(account=account_of(world, tenant))


def account_of(world: World, tenant: Tenant | None = None) -> Account:
    return Account.objects.get(tenant=tenant or world.amber, ref="stripe")


def last_request(world: World) -> int:
    told: list[dict[str, Any]] = world.sandbox.requests()
    return int(told[-1]["id"]) if told else 0


def requests_since(world: World, number: int) -> list[dict[str, Any]]:
    """What the provider was asked since then; the order system is not it."""
    return [r for r in world.sandbox.requests(after=str(number)) if r["path"].startswith("/v1/")]


def swept_pages(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those for pages of the whole account's list."""
    return [r for r in requests if r["path"].startswith("/v1/refunds?") and "payment_intent" not in r["path"]]


def wish_sweep(world: World) -> None:
    """As if so many had been due that somebody wished for it."""
    rows.run(
        "INSERT INTO runtime_app_accountpace (account_id, tokens, refilled_at, troubles, sweep_due_at, sweep_since)"
        " VALUES (%s, 0, runtime_now(), 0, runtime_now(), runtime_now()) ON CONFLICT (account_id) DO UPDATE"
        " SET sweep_due_at = excluded.sweep_due_at, sweep_since = excluded.sweep_since",
        [account_of(world).id],
    )
