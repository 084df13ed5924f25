"""Making and changing the orders that the sandbox's order system answers for."""

from __future__ import annotations

from typing import Any

from runtime_app.currencies import EXPONENTS
from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.asking import only, ref, text
from runtime_app.sandbox.faults import Unusable
from runtime_app.sandbox.http11 import Reply
from runtime_app.sandbox.ledger import Plan
from runtime_app.sandbox.orders import problem
from runtime_app.sandbox.units import from_wire, to_wire
from runtime_app.sandbox.wire import json_reply

MINOR_MOST = 10**12


def _minor(asked: dict[str, Any], name: str, currency: str) -> int:
    value = asked.get(name)
    if type(value) is not int or not 1 <= value <= MINOR_MOST:
        raise Unusable(f"`{name}` is a whole number of minor units between 1 and {MINOR_MOST}.")
    if from_wire(to_wire(value, currency), currency) != value:
        raise Unusable(f"`{name}`: this provider cannot hold {value} minor units of {currency}.")
    return value


def make_order(sandbox: Sandbox, asked: dict[str, Any]) -> Reply:
    """201 with the new order; 200 when exactly this order is there already; 409 when another one is."""
    only(asked, "An order", "tenant", "order_ref", "currency", "destination", "note", "payments")
    tenant, order_ref, currency = ref(asked, "tenant"), ref(asked, "order_ref"), asked.get("currency")
    if not isinstance(currency, str) or currency not in EXPONENTS:
        raise Unusable("`currency` is an ISO 4217 code in capitals.")
    destination, note, listed = text(asked, "destination"), text(asked, "note"), asked.get("payments")
    if not isinstance(listed, list) or not 1 <= len(listed) <= 50 or not all(isinstance(p, dict) for p in listed):
        raise Unusable("`payments` is a list of one to fifty objects with payment_ref and captured_minor.")
    payments = []
    for payment in listed:
        only(payment, "A payment", "payment_ref", "captured_minor", "account")
        payments.append(
            (ref(payment, "payment_ref"), _minor(payment, "captured_minor", currency), text(payment, "account"))
        )
    if len({name for name, _, _ in payments}) != len(payments):
        raise Unusable("Each payment of an order has a payment_ref of its own.")
    known = sandbox.orders.order(tenant, order_ref)
    if known is not None:
        there = [(r["payment_ref"], r["captured_minor"], r["account"]) for r in sandbox.store.all(
            "SELECT * FROM payments WHERE tenant = ? AND order_ref = ? ORDER BY position", tenant, order_ref)]
        if known["currency"] != currency or there != payments:
            return problem(409, "This order exists with another currency or other payments.")
        return json_reply(sandbox.orders.shape(known))
    for name, _, _ in payments:
        if sandbox.ledger.payment(name) is not None:
            return problem(409, f"The payment {name} belongs to another order.")
    with sandbox.store.together():
        sandbox.store.run("INSERT INTO orders VALUES (?, ?, ?, ?, ?, 1)", tenant, order_ref, currency, destination,
                          note)
        for position, (name, captured, account) in enumerate(payments):
            sandbox.store.run("INSERT INTO payments VALUES (?, ?, ?, ?, ?, ?, ?, ?)", name, tenant, order_ref, position,
                              captured, currency, sandbox.clock.now(), account)
    made = sandbox.orders.order(tenant, order_ref)
    assert made is not None
    return json_reply(sandbox.orders.shape(made), 201)


def patch_order(sandbox: Sandbox, order_ref: str, asked: dict[str, Any]) -> Reply:
    """Change one thing or several of an order; together they make one new version, an outside refund one more."""
    only(asked, "A change", "tenant", "note", "destination", "outside_refund")
    rows = sandbox.store.all("SELECT * FROM orders WHERE order_ref = ?", order_ref)
    if "tenant" in asked:
        rows = [r for r in rows if r["tenant"] == ref(asked, "tenant")]
    if not rows:
        return problem(404, "There is no such order.")
    if len(rows) > 1:
        raise Unusable("Several tenants have an order of this name; tell `tenant` too.")
    if not set(asked) - {"tenant"}:
        raise Unusable("Tell what changes: note, destination or outside_refund.")
    row = rows[0]
    note = text(asked, "note") if "note" in asked else row["note"]
    destination = text(asked, "destination") if "destination" in asked else row["destination"]
    with sandbox.store.together():
        if (refund := asked.get("outside_refund")) is not None:
            _refund_outside(sandbox, row["tenant"], order_ref, row["currency"], refund)
        if "note" in asked or "destination" in asked:
            sandbox.store.run("UPDATE orders SET note = ?, destination = ?, version = version + 1 WHERE tenant = ?"
                              " AND order_ref = ?", note, destination, row["tenant"], order_ref)
    changed = sandbox.orders.order(row["tenant"], order_ref)
    assert changed is not None
    return json_reply(sandbox.orders.shape(changed))


def _refund_outside(sandbox: Sandbox, tenant: str, order_ref: str, currency: str, refund: Any) -> None:
    if not isinstance(refund, dict):
        raise Unusable("`outside_refund` is an object with payment_ref and amount_minor.")
    only(refund, "An outside refund", "payment_ref", "amount_minor")
    payment_ref, amount = ref(refund, "payment_ref"), _minor(refund, "amount_minor", currency)
    payment = sandbox.ledger.payment(payment_ref)
    if payment is None or (payment["tenant"], payment["order_ref"]) != (tenant, order_ref):
        raise Unusable(f"The order has no payment {payment_ref}.")
    sandbox.ledger.create(Plan(payment_ref, amount, {}))
