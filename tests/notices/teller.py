"""What a provider tells, signed as Stripe signs it, and Amber's door for it."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.http import HttpResponse
from django.test import Client

from runtime_app import looks, notices, rows, watch
from runtime_app.models import Account, Notice, Task, Tenant
from tests.world import World

SECRET = "whsec_amber"


def now() -> datetime:
    """The product's time, by which the age of a signature is judged."""
    at: datetime = rows.run("SELECT runtime_now()")[0][0]
    return at


def event(
    refund: str | None = None, *, operation: object = None, payment: str | None = None, status: str = "succeeded",
    id: str | None = None, kind: str = "refund.updated", ago: float = 0.0, live: bool = False,
) -> dict[str, Any]:
    """An event about a refund; `ago` seconds before now it happened."""
    about: dict[str, Any] = {
        "id": refund or f"re_{uuid4().hex}", "object": "refund", "payment_intent": payment, "status": status,
        "metadata": {} if operation is None else {"operation_id": str(operation)},
    }
    created = int(now().timestamp() - ago)
    return {
        "id": id or f"evt_{uuid4().hex}", "object": "event", "type": kind, "created": created, "livemode": live,
        "data": {"object": about},
    }


def signature(body: bytes, secret: str = SECRET, *, age: float = 0.0) -> str:
    at = int(now().timestamp() - age)
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={signed}"


class Teller:
    """Stripe, as it posts to one account of one tenant."""

    def __init__(self, tenant: Tenant, secret: str = SECRET) -> None:
        self.account = Account.objects.get(tenant=tenant, ref="stripe")
        self.path = f"/hooks/stripe/{self.account.pk}"
        self.secret = secret
        self.client = Client(raise_request_exception=False, enforce_csrf_checks=True)

    def post(self, body: bytes, header: str | None = None, *, path: str | None = None) -> HttpResponse:
        """The raw body with this signature; by default a right one."""
        headers = {"Stripe-Signature": signature(body, self.secret) if header is None else header}
        sent = {name: value for name, value in headers.items() if value}
        return self.client.post(  # type: ignore[return-value]
            path or self.path, body, content_type="application/json", headers=sent
        )

    def tell(self, about: dict[str, Any]) -> Notice:
        """Post the event, rightly signed; the stored notice."""
        answer = self.post(json.dumps(about).encode())
        assert answer.status_code == 200, answer.content
        return Notice.objects.get(account=self.account, event_id=about["id"])


def heed(world: World) -> None:
    """What a worker does beside its tasks, once, without waiting for timers."""
    ports = world.ports()
    for work in (notices.work, looks.work, watch.watch):
        for _ in range(50):
            if not work(ports, actor="worker:in-test", limit=1):
                break


def until(world: World, true: Any, seconds: float = 20.0) -> Any:
    """Work on notices, looks and tasks until it becomes true."""

    def look() -> Any:
        heed(world)
        return true()

    return world.until(look, seconds)


def handled(world: World, *told: Notice) -> list[str]:
    """What came of these, once every one is dealt with."""

    def all_handled() -> list[str]:
        for notice in told:
            notice.refresh_from_db()
        return [n.outcome for n in told] if all(n.handled_at for n in told) else []

    outcomes: list[str] = until(world, all_handled)
    return outcomes


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status
