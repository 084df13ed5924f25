"""Tasks to be driven, stored by the product's own births in bulk; nobody is rung for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

CHUNK = 500


def tenant() -> Any:
    from runtime_app.members import found_tenant

    return found_tenant("bench", "Bench", approval_threshold_minor=1_000_000)


def account(tenant: Any, url: str) -> None:
    """Let the tenant's money move at the sandbox at this address."""
    from runtime_app import accounts

    accounts.keep(tenant, "stripe", provider="stripe", api_key="sk_test_bench", base_url=url, is_default=True)


def noop3(tenant_id: Any, count: int) -> None:
    """Store this many three-step tasks."""
    _store([_new("noop3", tenant_id, actor="bench") for _ in range(count)])


def refunds(account: Any, tenant: Any, orders: Iterable[str]) -> None:
    """Store a refund of 1000 for each of these orders, as this service account asks for it."""
    from runtime_app import access

    asker = {"actor": access.actor(account), "service_account_id": account.id}
    _store([
        _new("refund", tenant.id, order_ref=order, amount_minor=1000, currency="USD", **asker) for order in orders
    ])


def _new(workflow: str, tenant_id: Any, **given: Any) -> Any:
    from runtime_app.births import NewTask

    return NewTask(
        tenant_id=tenant_id, workflow=workflow, workflow_version=1, request_key=uuid4().hex, request_sha256="0" * 64,
        **given,
    )


def _store(new: Sequence[Any]) -> None:
    from runtime_app.births import open_tasks

    for start in range(0, len(new), CHUNK):
        open_tasks(new[start:start + CHUNK])
