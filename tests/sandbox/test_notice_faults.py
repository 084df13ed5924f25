"""F36 to F41: what becomes of notices on their way."""

from __future__ import annotations

import time
from typing import Any

import pytest
import requests
import stripe

from tests.sandbox.conftest import Tenant, Wire
from tests.sandbox_process import wait_until


def arm(wire: Wire, code: str, payment: str, **more: Any) -> None:
    wire.sandbox.fault(code, match={"payment_ref": payment}, **more)


def states(wire: Wire, payment: str) -> list[str]:
    return [notice["state"] for notice in wire.sandbox.notices(payment_ref=payment)]


def test_f36_loses_the_notices_of_one_change_and_no_more(wire: Wire, tenant: Tenant) -> None:
    """F36: the refund is made, and nobody is told of it."""
    payment = tenant.payment()
    arm(wire, "F36", payment)
    tenant.wire.refund(payment)
    assert states(wire, payment) == ["lost", "lost"] and wire.moved(payment) == 100
    tenant.wire.refund(payment)
    tenant.inbox.wait(2)
    assert states(wire, payment)[:2] == ["lost", "lost"]
    assert {n["attempts"] for n in wire.sandbox.notices(payment_ref=payment, state="lost")} == {0}


def test_f37_delivers_the_same_notice_several_times(wire: Wire, tenant: Tenant) -> None:
    """F37: one event id, several deliveries."""
    payment = tenant.payment()
    arm(wire, "F37", payment, copies=3)
    tenant.wire.refund(payment)
    ids = [received.event["id"] for received in tenant.inbox.wait(6)]
    assert sorted(ids.count(one) for one in set(ids)) == [3, 3]


def test_f38_holds_a_notice_back_until_the_next_one_has_gone(wire: Wire, tenant: Tenant) -> None:
    """F38, C08: the older notice arrives after the newer one."""
    payment = tenant.payment()
    arm(wire, "F38", payment)
    wire.sandbox.fault("F21", match={"payment_ref": payment})
    refund = tenant.wire.refund(payment).json()["id"]
    assert states(wire, payment) == ["held", "held"]
    wire.sandbox.set_refund(refund, "succeeded")
    tenant.inbox.wait(3)
    assert tenant.inbox.types() == ["refund.updated", "refund.created", "charge.refunded"]
    first, second = (received.event["data"]["object"]["status"] for received in tenant.inbox.received[:2])
    assert (first, second) == ("succeeded", "pending")


def test_f38_lets_go_after_its_seconds(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    arm(wire, "F38", payment, seconds=600)
    tenant.wire.refund(payment)
    assert states(wire, payment) == ["held", "held"]
    wire.sandbox.advance(601)
    tenant.inbox.wait(2)


def test_f39_tells_before_the_request_is_answered(wire: Wire, tenant: Tenant) -> None:
    """F39: the caller has nothing yet, and the notice has come."""
    payment = tenant.payment()
    arm(wire, "F39", payment)
    tenant.inbox.gate.clear()
    with pytest.raises(requests.ReadTimeout):
        tenant.wire.refund(payment, timeout=0.5)
    assert tenant.inbox.wait(2) and wire.moved(payment) == 100
    tenant.inbox.gate.set()
    wait_until(lambda: states(wire, payment) == ["delivered"] * 2)


def test_f39_goes_with_a_lost_answer(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    arm(wire, "F39", payment)
    arm(wire, "F4", payment)
    with pytest.raises(requests.ConnectionError):
        tenant.wire.refund(payment)
    assert sorted(tenant.inbox.types()) == ["charge.refunded", "refund.created"]


def test_f39_answers_once_the_notice_was_sent(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    arm(wire, "F39", payment)
    assert tenant.wire.refund(payment).status_code == 200
    assert len(tenant.inbox.received) == 2


@pytest.mark.parametrize("how", ["bad_signature", "old_timestamp", "no_header", "other_secret"])
def test_f40_signs_as_it_should_not(wire: Wire, tenant: Tenant, how: str) -> None:
    """F40: none of these may be believed."""
    payment = tenant.payment()
    arm(wire, "F40", payment, how=how)
    tenant.wire.refund(payment)
    received = tenant.inbox.wait(2)[0]
    assert ("stripe-signature" in received.headers) == (how != "no_header")
    with pytest.raises(stripe.SignatureVerificationError) as refused:
        stripe.Webhook.construct_event(received.body, received.signature or None, tenant.secret)
    assert ("Timestamp outside" in str(refused.value)) == (how == "old_timestamp")


def test_f41_tells_of_a_refund_that_nobody_made(wire: Wire, tenant: Tenant) -> None:
    """F41: rightly signed, and about nothing we know."""
    payment = tenant.payment()
    arm(wire, "F41", payment, operation_id="op-of-nobody")
    refund = tenant.wire.refund(payment).json()["id"]
    events = [received.event for received in tenant.inbox.wait(3)]
    [unknown] = [e for e in events if e["data"]["object"].get("metadata") == {"operation_id": "op-of-nobody"}]
    assert unknown["data"]["object"]["id"] not in (refund, None)
    received = next(r for r in tenant.inbox.received if r.event == unknown)
    assert stripe.Webhook.construct_event(received.body, received.signature, tenant.secret).created <= time.time() + 1e9
    assert wire.moved(payment) == 100


def test_faults_of_notices_meet_only_those_they_are_for(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    wire.sandbox.fault("F36", match={"operation_id": "op-lost"}, times=2)
    tenant.wire.refund(payment, operation="op-kept")
    tenant.wire.refund(payment, operation="op-lost")
    tenant.inbox.wait(2)
    assert [n["operation_id"] for n in wire.sandbox.notices(payment_ref=payment, state="lost")] == ["op-lost"] * 2
    assert wire.sandbox.control("GET", "").json()["armed"][0]["times_left"] == 1
