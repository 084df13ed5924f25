"""The order system that the sandbox plays: orders, their payments, and the refunds it knows of."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from runtime_app.sandbox.clock import Clock
from runtime_app.sandbox.faults import Call
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.store import Store
from runtime_app.sandbox.wire import json_reply, segments

_RECORD = {"operation_id": str, "payment_ref": str, "amount_minor": int, "status": str}


def problem(status: int, sentence: str) -> Reply:
    return json_reply({"error": sentence}, status)


def read_call(request: Request) -> Call:
    """Which call this is and what it is about."""
    match (request.method, *segments(request.path)):
        case ("GET", "orders", tenant, order_ref):
            return Call("order", {"tenant": tenant, "order_ref": order_ref})
        case ("POST", "orders", tenant, order_ref, "refunds"):
            facts = {"tenant": tenant, "order_ref": order_ref}
            try:
                asked = json.loads(request.body)
            except (ValueError, RecursionError):
                asked = {}
            if isinstance(asked, dict):
                facts |= {k: asked[k] for k in ("operation_id", "payment_ref") if isinstance(asked.get(k), str)}
            return Call("write_back", facts)
    return Call("other", {})


class Orders:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    def order(self, tenant: str, order_ref: str) -> sqlite3.Row | None:
        return self.store.one("SELECT * FROM orders WHERE tenant = ? AND order_ref = ?", tenant, order_ref)

    def shape(self, row: sqlite3.Row) -> dict[str, Any]:
        payments = []
        for payment in self.store.all(
            "SELECT payment_ref, captured_minor, account FROM payments WHERE tenant = ? AND order_ref = ?"
            " ORDER BY position",
            row["tenant"], row["order_ref"],
        ):
            refunds = self.store.all(
                "SELECT amount_minor, operation_id FROM refunds WHERE payment_ref = ?"
                " AND status IN ('succeeded', 'pending', 'requires_action') ORDER BY seq", payment["payment_ref"],
            )
            payments.append(dict(payment) | {"refunds": [dict(r) for r in refunds]})
        return {
            "order_ref": row["order_ref"], "version": row["version"], "as_of": self.clock.iso(),
            "currency": row["currency"], "destination": row["destination"], "note": row["note"], "payments": payments,
        }

    def read(self, request: Request) -> Reply:
        _, tenant, order_ref = segments(request.path)
        row = self.order(tenant, order_ref)
        return problem(404, "There is no such order.") if row is None else json_reply(self.shape(row))

    def record(self, request: Request) -> Reply:
        """Note a refund that the product tells of: the same one any number of times."""
        _, tenant, order_ref, _ = segments(request.path)
        if self.order(tenant, order_ref) is None:
            return problem(404, "There is no such order.")
        try:
            told = json.loads(request.body)
        except (ValueError, RecursionError):
            return problem(400, "The body is not JSON.")
        if not isinstance(told, dict) or set(told) - set(_RECORD) - {"provider_ref"}:
            return problem(422, f"The body is an object with {', '.join(_RECORD)} and provider_ref.")
        for name, kind in _RECORD.items():
            if type(told.get(name)) is not kind:
                return problem(422, f"`{name}` is missing or has the wrong type.")
        if not 1 <= told["amount_minor"] <= 10**15:
            return problem(422, "`amount_minor` is a whole number of minor units from 1.")
        provider_ref = told.get("provider_ref")
        if provider_ref is not None and not isinstance(provider_ref, str):
            return problem(422, "`provider_ref` is a text or null.")
        known = self.store.one("SELECT * FROM write_backs WHERE operation_id = ?", told["operation_id"])
        if known is not None:
            fixed = (known["tenant"], known["order_ref"], known["payment_ref"], known["amount_minor"])
            if fixed != (tenant, order_ref, told["payment_ref"], told["amount_minor"]):
                return problem(409, "This operation was recorded before with another order, payment or amount.")
            if (known["status"], known["provider_ref"]) == (told["status"], provider_ref):
                return json_reply({"recorded": True})
        with self.store.together():
            self.store.run(
                "INSERT OR REPLACE INTO write_backs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", told["operation_id"], tenant,
                order_ref, told["payment_ref"], told["amount_minor"], told["status"], provider_ref, self.clock.now(),
            )
            self.store.run(
                "UPDATE orders SET version = version + 1 WHERE tenant = ? AND order_ref = ?", tenant, order_ref
            )
        return json_reply({"recorded": True})
