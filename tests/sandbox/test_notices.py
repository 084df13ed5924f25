"""Notices: what they say, how they are signed, and that they come until they are taken."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import stripe

from tests.sandbox.conftest import Tenant, Wire
from tests.sandbox_process import running_sandbox, wait_until


def test_a_refund_is_told_and_the_official_sdk_verifies_it(wire: Wire, tenant: Tenant) -> None:
    """C06, M11: the raw body and the header are what `stripe.Webhook.construct_event` takes."""
    payment = tenant.payment()
    answer = tenant.wire.refund(payment, 300, operation="op-told", key="key-told")
    for received in tenant.inbox.wait(2):
        event = stripe.Webhook.construct_event(received.body, received.signature, tenant.secret)
        assert event.livemode is False and event.object == "event"
    created, charge = (received.event for received in tenant.inbox.received)
    assert created["type"] == "refund.created" and created["data"]["object"] == answer.json()
    assert created["request"] == {"id": answer.headers["request-id"], "idempotency_key": "key-told"}
    assert charge["type"] == "charge.refunded"
    assert (charge["data"]["object"]["object"], charge["data"]["object"]["amount_refunded"]) == ("charge", 300)
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(tenant.inbox.received[0].body, tenant.inbox.received[0].signature, "whsec_no")


def test_a_change_of_status_is_told_with_what_it_was(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    wire.sandbox.fault("F21", match={"payment_ref": payment})
    refund = tenant.wire.refund(payment).json()["id"]
    tenant.inbox.wait(2)
    wire.sandbox.set_refund(refund, "failed")
    updated, failed = (received.event for received in tenant.inbox.wait(4)[2:])
    assert (updated["type"], failed["type"]) == ("refund.updated", "refund.failed")
    assert updated["data"]["previous_attributes"] == {"status": "pending"}
    assert failed["data"]["object"]["status"] == "failed" and failed["data"]["object"]["failure_reason"]
    assert updated["request"] == {"id": None, "idempotency_key": None}, "no request made this change"
    assert len({received.event["id"] for received in tenant.inbox.received}) == 4


def test_the_time_of_the_signature_is_the_sandboxs(wire: Wire, tenant: Tenant) -> None:
    wire.sandbox.advance(7 * 86400)
    tenant.wire.refund(tenant.payment())
    received = tenant.inbox.wait(1)[0]
    at = int(received.signature.split(",")[0].removeprefix("t="))
    assert at >= time.time() + 7 * 86400 - 60 and 0 <= at - received.event["created"] < 60


def test_a_notice_comes_again_until_it_is_taken(wire: Wire, tenant: Tenant) -> None:
    tenant.inbox.answers += [500, 302]
    refund = tenant.wire.refund(tenant.payment()).json()["id"]

    def taken() -> bool:
        wire.sandbox.advance(100)
        return all(notice["state"] == "delivered" for notice in wire.sandbox.notices(refund_id=refund))

    wait_until(taken)
    answers = sorted([a["answered"] for a in n["answers"]] for n in wire.sandbox.notices(refund_id=refund))
    assert answers == [[302, 200], [500, 200]]
    ids = [received.event["id"] for received in tenant.inbox.received]
    assert len(ids) == 4 and len(set(ids)) == 2, "the same event, not a new one"


def test_a_notice_that_nobody_takes_is_given_up(wire: Wire, tenant: Tenant) -> None:
    tenant.inbox.answers += [503] * 10
    refund = tenant.wire.refund(tenant.payment()).json()["id"]

    def given_up() -> bool:
        wire.sandbox.advance(100)
        return all(notice["state"] == "given_up" for notice in wire.sandbox.notices(refund_id=refund))

    wait_until(given_up)
    assert [notice["attempts"] for notice in wire.sandbox.notices(refund_id=refund)] == [5, 5]


def test_a_receiver_that_is_not_there_is_written_down_in_words(wire: Wire) -> None:
    wire.sandbox.account("absent", "sk_test_absent", notice_url="http://127.0.0.1:1/", notice_secret="whsec_x")
    wire.refund(wire.payment(tenant="absent"))
    told = wait_until(lambda: [n for n in wire.sandbox.notices(tenant="absent") if n["attempts"]])
    assert "ConnectionRefused" in told[0]["answers"][0]["answered"] and told[0]["state"] == "waiting"


def test_a_slow_receiver_stops_nobody(wire: Wire, tenant: Tenant) -> None:
    tenant.inbox.gate.clear()
    tenant.wire.refund(tenant.payment())
    tenant.inbox.wait(1)
    assert wire.refund(wire.payment()).status_code == 200
    tenant.inbox.gate.set()
    tenant.inbox.wait(2)


def test_what_was_on_its_way_when_the_sandbox_was_killed_is_sent_again(tmp_path: Any, inbox: Any) -> None:
    with running_sandbox(tmp_path) as sandbox:
        tenant = Tenant(sandbox, inbox)
        inbox.gate.clear()
        tenant.wire.refund(tenant.payment())
        inbox.wait(1)
        sandbox.kill()
        inbox.gate.set()
        sandbox.start()
        wait_until(lambda: [n["state"] for n in sandbox.notices()] == ["delivered"] * 2)
        assert inbox.received[1].body == inbox.received[0].body
        tenant.close()


def test_the_sandbox_ends_quietly_while_a_notice_is_on_its_way(
    tmp_path: Any, inbox: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with running_sandbox(tmp_path) as sandbox:
        tenant = Tenant(sandbox, inbox)
        inbox.gate.clear()
        tenant.wire.refund(tenant.payment())
        inbox.wait(1)
        sandbox.kill(signal.SIGTERM)
        inbox.gate.set()
        tenant.close()
    assert capfd.readouterr().err == ""


def test_a_notice_can_be_sent_by_hand_in_any_order_and_number(wire: Wire, tenant: Tenant) -> None:
    """C08: newer before older, five times over, and the status it claims is not the true one."""
    payment = tenant.payment()
    refund = tenant.wire.refund(payment, operation="op-c08").json()["id"]
    tenant.inbox.wait(2)
    sent = wire.sandbox.notice(operation_id="op-c08", type="refund.updated", id="evt_e2", created=2000, times=5)
    sent += wire.sandbox.notice(refund_id=refund, id="evt_e1", created=1000, status="pending", amount=1)
    assert [(n["event_id"], n["state"], n["attempts"]) for n in sent] == [
        *[("evt_e2", "delivered", 1)] * 5, ("evt_e1", "delivered", 1)]
    events = [received.event for received in tenant.inbox.received[2:]]
    assert {event["id"] for event in events[:5]} == {"evt_e2"} and events[5]["created"] == 1000
    assert (events[5]["data"]["object"]["status"], events[5]["data"]["object"]["amount"]) == ("pending", 1)
    assert events[0]["data"]["object"]["status"] == "succeeded"


def test_five_by_hand_arrive_at_once(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    tenant.wire.refund(payment)
    tenant.inbox.wait(2)
    tenant.inbox.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(wire.sandbox.notice, payment_ref=payment, id="evt_x", times=5)
        ids = [received.event["id"] for received in tenant.inbox.wait(7)[2:]]
        assert ids == ["evt_x"] * 5, "none waits for another"
        tenant.inbox.gate.set()
        assert len(sent.result()) == 5


def test_a_notice_by_hand_can_be_forged(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    [sent] = wire.sandbox.notice(payment_ref=payment, operation_id="op-of-nobody", secret="whsec_forged")
    received = tenant.inbox.wait(1)[0]
    stripe.Webhook.construct_event(received.body, received.signature, "whsec_forged")
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(received.body, received.signature, tenant.secret)
    assert received.event["data"]["object"]["metadata"] == {"operation_id": "op-of-nobody"}
    assert sent["refund_id"] not in [refund["id"] for refund in wire.sandbox.refunds(all=True)]


@pytest.mark.parametrize("asked", [
    {}, {"colour": "red", "payment_ref": "pi_1"}, {"payment_ref": 5}, {"payment_ref": "pi_1", "type": "Nonsense"},
    {"payment_ref": "pi_1", "times": 0}, {"payment_ref": "pi_1", "times": 101}, {"payment_ref": "pi_1", "created": "x"},
    {"payment_ref": "pi_1", "status": "good"}, {"payment_ref": "pi_1", "amount": 0},
    {"payment_ref": "pi_1", "live": "yes"}, {"payment_ref": "pi_1", "how": "no"}, {"payment_ref": "pi_1", "how": []},
    {"payment_ref": "pi_1", "age": "old"}, {"payment_ref": "pi_1", "secret": 5}, {"payment_ref": "pi_1", "id": ""},
    {"payment_ref": "pi_1", "tenant": "nobody-of-this-name"},
], ids=str)
def test_a_notice_that_cannot_be_is_refused(wire: Wire, tenant: Tenant, asked: dict[str, Any]) -> None:
    answer = wire.sandbox.control("POST", "/notices", {"tenant": tenant.slug} | asked)
    assert answer.status_code == 422 and answer.json()["error"].endswith(".")
    assert wire.sandbox.notices(tenant=tenant.slug) == []


def test_a_notice_for_several_accounts_needs_the_tenant(wire: Wire, tenant: Tenant) -> None:
    wire.sandbox.account("another", "sk_test_another", notice_url=tenant.inbox.url, notice_secret="whsec_x")
    assert wire.sandbox.control("POST", "/notices", {"operation_id": "op-x"}).status_code == 422
    assert wire.sandbox.notice(operation_id="op-x", tenant=tenant.slug)[0]["tenant"] == tenant.slug
