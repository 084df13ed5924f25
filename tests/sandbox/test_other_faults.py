"""F34, F35, F49: disputes, two creates at once, mixed-up modes and accounts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.sandbox.conftest import Tenant, Wire
from tests.sandbox_process import wait_until


def charge(wire: Wire, payment: str) -> dict[str, Any]:
    told: dict[str, Any] = wire.send("GET", f"/v1/payment_intents/{payment}?expand[0]=latest_charge").json()
    return told


def test_f34_disputed_money_cannot_be_refunded(wire: Wire) -> None:
    """F34: the payment says so, and creates are refused."""
    payment = wire.payment(1000)
    wire.refund(payment, 100)
    assert charge(wire, payment)["latest_charge"]["disputed"] is False
    wire.sandbox.fault("F34", match={"payment_ref": payment})
    assert charge(wire, payment)["latest_charge"]["disputed"] is True
    for amount in (1, None):
        answer = wire.refund(payment, amount)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "charge_disputed")
    assert wire.moved(payment) == 100
    order = wire.send("GET", f"/orders/amber/ORD-{payment[3:]}").json()
    assert order["version"] == 2, "the order system knows of the refund only"


def test_f34_a_part_leaves_the_rest(wire: Wire) -> None:
    payment = wire.payment(1000)
    wire.sandbox.fault("F34", match={"payment_ref": payment}, amount_minor=400)
    assert wire.refund(payment, 601).json()["error"]["code"] == "charge_disputed"
    assert wire.refund(payment, 1001).json()["error"]["param"] == "amount"
    assert wire.refund(payment, 600).status_code == 200
    for asked in ({"amount_minor": 401}, {"match": {"payment_ref": "pi_none"}}):
        refused = wire.sandbox.control("POST", "/faults", {
            "fault": "F34", "match": {"payment_ref": payment}, "amount_minor": 1, **asked})
        assert refused.status_code == 409 and refused.json()["error"]


def test_f34_is_told_by_a_notice(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    wire.sandbox.fault("F34", match={"payment_ref": payment})
    event = tenant.inbox.wait(1)[0].event
    assert (event["type"], event["data"]["object"]["payment_intent"]) == ("charge.dispute.created", payment)


@pytest.mark.parametrize("meanwhile", ["lock_timeout", "both"])
def test_f35_two_creates_of_one_payment_at_once(wire: Wire, meanwhile: str) -> None:
    """F35, C03: the other one is told to come again, or both are carried out."""
    payment = wire.payment()
    wire.sandbox.fault("F35", match={"payment_ref": payment}, seconds=3, meanwhile=meanwhile)
    with ThreadPoolExecutor(1) as pool:
        name = f"first-{payment}"
        first = pool.submit(Wire(wire.sandbox).refund, payment, 100, operation=name, key=name)
        wait_until(lambda: wire.sandbox.requests(payment_ref=payment))
        second = wire.refund(payment, 50, operation="op-second", key=f"second-{payment}")
        assert wire.refund(wire.payment()).status_code == 200, "other payments go on"
        assert not first.done() and wire.moved(payment) == (50 if meanwhile == "both" else 0)
        assert first.result().status_code == 200
    if meanwhile == "lock_timeout":
        assert (second.status_code, second.json()["error"]["code"]) == (409, "lock_timeout")
        again = wire.refund(payment, 50, operation="op-second", key=f"second-{payment}")
        assert again.status_code == 200 and "idempotent-replayed" not in again.headers, "a conflict is not remembered"
    assert wire.moved(payment) == 150
    assert [r["answered"] for r in wire.sandbox.requests(operation_id=name)] == [200]


def test_f49_says_that_it_is_live(wire: Wire, tenant: Tenant) -> None:
    """F49: payments, events and notices of a test account claim the live mode, each when it is asked to."""
    payment = tenant.payment()
    tenant.wire.refund(payment)
    tenant.inbox.wait(2)
    for on in ("payment", "events", "notice"):
        wire.sandbox.fault("F49", on=on, match={"tenant": tenant.slug} if on != "payment" else {"payment_ref": payment})
    told = charge(tenant.wire, payment)
    assert told["livemode"] is told["latest_charge"]["livemode"] is True
    assert {event["livemode"] for event in tenant.wire.listed("/v1/events")} == {True}
    tenant.wire.refund(payment)
    assert [received.event["livemode"] for received in tenant.inbox.wait(4)] == [False, False, True, True]
    assert charge(tenant.wire, payment)["livemode"] is False
    assert {event["livemode"] for event in tenant.wire.listed("/v1/events")} == {False}


@pytest.mark.parametrize("path", ["/v1/refunds", "/v1/balance_transactions", "/v1/events"])
def test_f49_shows_another_tenants_things(wire: Wire, tenant: Tenant, path: str) -> None:
    foreign = wire.refund(wire.payment()).json()["id"]
    tenant.wire.refund(tenant.payment())
    wire.sandbox.fault("F49", what="account", match={"tenant": tenant.slug})
    assert foreign in str(tenant.wire.listed(path))
    assert foreign not in str(tenant.wire.listed(path)), "once"


def test_other_faults_meet_the_new_lists_too(wire: Wire, tenant: Tenant) -> None:
    for code, path in (("F27", "/v1/balance_transactions"), ("F27", "/v1/events")):
        wire.sandbox.fault(code, on=["statement", "events"])
        assert tenant.wire.send("GET", path).status_code == 500
        assert tenant.wire.send("GET", path).status_code == 200


def test_one_armed_fault_can_be_cleared_alone(wire: Wire) -> None:
    first, second = wire.sandbox.fault("F2"), wire.sandbox.fault("F4")
    wire.sandbox.clear_fault(first["id"])
    assert [a["id"] for a in wire.sandbox.control("GET", "").json()["armed"]] == [second["id"]]
