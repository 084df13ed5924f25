"""Each fault does on the wire, and in the ledger, what its help says."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import requests

from tests.sandbox.conftest import Wire
from tests.sandbox_process import wait_until


def arm(wire: Wire, code: str, payment: str, **more: Any) -> None:
    wire.sandbox.fault(code, match={"payment_ref": payment}, **more)


def last(wire: Wire, payment: str) -> dict[str, Any]:
    return wire.sandbox.requests(payment_ref=payment)[-1]


def test_f1_refuses_everybody_until_cleared_and_leaves_the_control_port(wire: Wire) -> None:
    payment = wire.payment()
    wire.sandbox.fault("F1")
    for path in (f"/v1/payment_intents/{payment}", "/orders/amber/ORD-1"):
        with pytest.raises(requests.ConnectionError, match="refused"):
            wire.send("GET", path)
    assert wire.sandbox.refunds(payment) == []
    wire.sandbox.clear_faults()
    assert wire.refund(payment).status_code == 200


def test_f1_ends_by_itself_after_its_seconds(wire: Wire) -> None:
    payment = wire.payment()
    told = requests.post(f"{wire.sandbox.url}/_sandbox/faults", json={"fault": "F1", "seconds": 1.5}, timeout=20)
    assert told.status_code == 201, "asked through the port that closes, it still answers"

    def open_again() -> bool:
        try:
            return wire.refund(payment).status_code == 200
        except requests.ConnectionError:
            return False

    assert not open_again()
    wait_until(open_again)


@pytest.mark.parametrize(("code", "more", "moved"), [
    ("F2", {"how": "close"}, 0), ("F2", {"how": "reset"}, 0),
    ("F4", {"how": "close"}, 100), ("F4", {"how": "reset"}, 100),
    ("F20", {"how": "close"}, 0), ("F50", {"how": "reset"}, 0), ("F3", {"seconds": 0.1}, 0),
])
def test_connections_end_without_an_answer(wire: Wire, code: str, more: dict[str, Any], moved: int) -> None:
    payment = wire.payment()
    arm(wire, code, payment, **more)
    with pytest.raises(requests.ConnectionError, match="reset" if more.get("how") == "reset" else "without response"):
        wire.refund(payment)
    assert wire.moved(payment) == moved
    assert (last(wire, payment)["answered"], last(wire, payment)["fault"]) == ("closed", code)


@pytest.mark.parametrize(("code", "moved"), [("F3", 0), ("F5", 100)])
def test_silence_blocks_nobody_else(wire: Wire, code: str, moved: int) -> None:
    payment = wire.payment()
    arm(wire, code, payment, seconds=60)
    with pytest.raises(requests.ReadTimeout):
        wire.refund(payment, timeout=0.2)
    assert wire.moved(payment) == moved
    wait_until(lambda: last(wire, payment)["answered"] == "closed")
    assert wire.refund(wire.payment()).status_code == 200


def test_f5_is_slow_and_right(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F5", payment, seconds=0.1, commit_after=0.1)
    assert wire.refund(payment).json()["amount"] == 100
    assert last(wire, payment)["answered"] == 200


def test_f5_moves_the_money_although_the_client_hung_up(wire: Wire) -> None:
    """C22: the effect is applied after the client's time limit struck."""
    payment = wire.payment()
    arm(wire, "F5", payment, seconds=0, commit_after=1.5)
    with pytest.raises(requests.ReadTimeout):
        wire.refund(payment, key="f5", timeout=0.1)
    assert wire.moved(payment) == 0
    wait_until(lambda: wire.moved(payment) == 100)


def test_f6_breaks_off_in_the_body(wire: Wire) -> None:
    for when, moved in (("before", 0), ("after", 100)):
        payment = wire.payment()
        arm(wire, "F6", payment, when=when)
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            wire.refund(payment)
        assert wire.moved(payment) == moved and last(wire, payment)["answered"] == "truncated"


def test_f7_and_f8_answer_what_was_not_promised(wire: Wire) -> None:
    for when, moved in (("before", 0), ("after", 100)):
        payment = wire.payment()
        arm(wire, "F7", payment, when=when, body="hello")
        assert (answer := wire.refund(payment)).status_code == 200 and answer.text == "hello"
        assert wire.moved(payment) == moved
        payment = wire.payment()
        arm(wire, "F8", payment, when=when, status=503)
        answer = wire.refund(payment)
        assert answer.status_code == 503 and answer.headers["content-type"] == "text/html"
        assert wire.moved(payment) == moved


def test_f9_closes_the_idle_connection_after_a_right_answer(wire: Wire) -> None:
    payment = wire.payment()
    wire.sandbox.fault("F9", on="payment", match={"payment_ref": payment})
    host, _, port = wire.sandbox.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(f"GET /v1/payment_intents/{payment} HTTP/1.1\r\nAuthorization: Bearer sk_x\r\n\r\n".encode())
        received = b""
        while piece := connection.recv(65536):
            received += piece
    assert received.startswith(b"HTTP/1.1 200") and b"connection: close" not in received
    assert received.endswith(b"}"), "the whole body, and then the end of the connection"


@pytest.mark.parametrize(("code", "moved"), [("F10", 0), ("F11", 100)])
def test_a_500_is_stored_under_the_key(wire: Wire, code: str, moved: int) -> None:
    payment = wire.payment()
    arm(wire, code, payment)
    first, second = wire.refund(payment, key=f"{code}-k"), wire.refund(payment, key=f"{code}-k")
    assert (first.status_code, second.status_code) == (500, 500)
    assert second.headers["idempotent-replayed"] == "true"
    assert wire.moved(payment) == moved


@pytest.mark.parametrize(("code", "more", "status"), [
    ("F12", {}, 429), ("F13", {}, 409), ("F13", {"code": "lock_timeout"}, 409), ("F15", {}, 400),
    ("F18", {}, 401), ("F18", {"status": 403}, 403),
])
def test_what_is_turned_away_at_the_door_is_not_remembered(
    wire: Wire, code: str, more: dict[str, Any], status: int
) -> None:
    payment = wire.payment()
    wire.sandbox.fault(code, match={"payment_ref": payment}, **more)
    key = f"{code}-{payment}"
    answer = wire.refund(payment, key=key)
    assert answer.status_code == status and answer.json()["error"]["type"]
    assert wire.moved(payment) == 0
    again = wire.refund(payment, key=key)
    assert again.status_code == 200 and "idempotent-replayed" not in again.headers


def test_f12_says_when_to_come_again_or_not(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F12", payment, retry_after=7)
    assert wire.refund(payment).headers["retry-after"] == "7"
    arm(wire, "F12", payment, retry_after=None)
    assert "retry-after" not in wire.refund(payment).headers


def test_f14_lies_about_the_replay(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F14", payment)
    assert wire.refund(payment, key="f14").headers["idempotent-replayed"] == "true"
    arm(wire, "F14", payment, header="absent")
    assert "idempotent-replayed" not in wire.refund(payment, key="f14").headers
    assert wire.moved(payment) == 100


def test_f16_and_f17_forget_keys(wire: Wire) -> None:
    for code in ("F16", "F17"):
        payment = wire.payment()
        arm(wire, code, payment)
        for _ in range(3):
            wire.refund(payment, key=f"{code}-k")
        assert wire.moved(payment) == 300


def test_f17_can_remember_successes_only(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F17", payment, mode="success_only")
    arm(wire, "F10", payment)
    assert [wire.refund(payment, key="f17s").status_code for _ in range(3)] == [500, 200, 200]
    assert wire.moved(payment) == 100


def test_f19_refuses_for_the_amount_before_or_after(wire: Wire) -> None:
    for when, moved in (("before", 0), ("after", 100)):
        payment = wire.payment()
        arm(wire, "F19", payment, when=when)
        assert wire.refund(payment).json()["error"]["code"] == "charge_already_refunded"
        assert wire.moved(payment) == moved


def test_f20_carries_the_request_out_later_once(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F20", payment, seconds=3600)
    with pytest.raises(requests.ConnectionError):
        wire.refund(payment, key="f20")
    wire.sandbox.advance(3599)
    assert wire.moved(payment) == 0
    wire.sandbox.advance(2)
    assert wire.moved(payment) == 100
    assert wire.refund(payment, key="f20").headers["idempotent-replayed"] == "true"


def test_f20_does_nothing_more_when_a_resend_was_quicker(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F20", payment, seconds=60)
    with pytest.raises(requests.ConnectionError):
        wire.refund(payment, key="f20b")
    assert wire.refund(payment, key="f20b").status_code == 200
    wire.sandbox.advance(61)
    assert wire.moved(payment) == 100


def test_f20_can_hold_its_key(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F20", payment, seconds=60, holds_key=True)
    with pytest.raises(requests.ConnectionError):
        wire.refund(payment, key="f20c")
    assert wire.refund(payment, key="f20c").status_code == 409
    wire.sandbox.advance(61)
    assert wire.refund(payment, key="f20c").headers["idempotent-replayed"] == "true"


def status(wire: Wire, refund: dict[str, Any]) -> str:
    return str(wire.send("GET", f"/v1/refunds/{refund['id']}").json()["status"])


def test_f21_is_pending_until_its_time_or_until_told(wire: Wire) -> None:
    for then, moved in (("succeeded", 100), ("failed", 0)):
        payment = wire.payment()
        arm(wire, "F21", payment, seconds=100, then=then)
        refund = wire.refund(payment).json()
        assert (refund["status"], refund["pending_reason"], wire.moved(payment)) == ("pending", "processing", 100)
        wire.sandbox.advance(101)
        assert (status(wire, refund), wire.moved(payment)) == (then, moved)
    payment = wire.payment()
    arm(wire, "F21", payment)
    refund = wire.refund(payment).json()
    wire.sandbox.advance(10**6)
    assert status(wire, refund) == "pending"
    wire.sandbox.set_refund(refund["id"], "failed")
    assert wire.send("GET", f"/v1/refunds/{refund['id']}").json()["failure_reason"] == "lost_or_stolen_card"
    assert wire.sandbox.refunds(payment) == [] and len(wire.sandbox.refunds(payment, all=True)) == 1


def test_f21_with_no_seconds_is_final_at_once(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F21", payment, seconds=0, then="failed")
    assert wire.refund(payment).json()["status"] == "failed"
    assert wire.refund(payment, 1000).status_code == 200, "a failed refund gives its amount back"


def test_f23_comes_back_days_later(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F23", payment, seconds=4 * 86400)
    refund = wire.refund(payment).json()
    assert refund["status"] == "succeeded"
    wire.sandbox.advance(4 * 86400 + 1)
    assert status(wire, refund) == "failed"


def test_f24_waits_for_balance(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F24", payment)
    assert wire.refund(payment).json()["pending_reason"] == "insufficient_funds"


def test_f25_and_f26_bend_the_list(wire: Wire) -> None:
    payment = wire.payment()
    query = f"/v1/refunds?payment_intent={payment}"
    wire.refund(payment)
    wire.refund(payment)
    arm(wire, "F26", payment, lie="lost_entry")
    assert len(wire.send("GET", query).json()["data"]) == 1
    arm(wire, "F26", payment, lie="has_more")
    page = wire.send("GET", query + "&limit=1").json()
    assert page["has_more"] is False and len(page["data"]) < 2
    arm(wire, "F25", payment, seconds=60)
    assert wire.send("GET", query).json()["data"] == []
    wire.sandbox.advance(61)
    assert len(wire.send("GET", query).json()["data"]) == 2


def test_f27_and_f28_break_queries(wire: Wire) -> None:
    payment = wire.payment()
    refund = wire.refund(payment).json()
    arm(wire, "F27", payment, times=2)
    assert wire.send("GET", f"/v1/refunds?payment_intent={payment}").status_code == 500
    assert wire.send("GET", f"/v1/payment_intents/{payment}").status_code == 500
    arm(wire, "F28", payment)
    assert wire.send("GET", f"/v1/refunds/{refund['id']}").status_code == 404
    assert status(wire, refund) == "succeeded"


def test_f29_to_f32_make_another_refund_than_asked_for(wire: Wire) -> None:
    payment, other = wire.payment(), wire.payment()
    arm(wire, "F29", payment)
    assert wire.refund(payment).json()["amount"] == 99
    arm(wire, "F29", payment, currency="eur")
    assert wire.refund(payment).json()["currency"] == "eur"
    arm(wire, "F31", payment)
    assert wire.refund(payment).json()["metadata"] == {}
    before = wire.moved(payment)
    arm(wire, "F30", payment, payment_ref=other)
    assert wire.refund(payment).json()["payment_intent"] == other
    assert (wire.moved(payment), wire.moved(other)) == (before, 100)
    arm(wire, "F32", payment)
    wire.refund(payment)
    assert wire.moved(payment) == before + 200


def test_f33_refunds_in_the_dashboard(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F33", payment, amount_minor=250)
    assert [(r["amount_minor"], r["operation_id"], r["idempotency_key"]) for r in wire.sandbox.refunds(payment)] == [
        (250, None, None)]
    assert wire.sandbox.control("POST", "/faults", {
        "fault": "F33", "match": {"payment_ref": payment}, "amount_minor": 800}).status_code == 409
    arm(wire, "F33", payment)
    assert wire.moved(payment) == 1000


def test_f50_is_an_outage_that_ends_by_the_sandboxs_clock(wire: Wire) -> None:
    payment = wire.payment()
    wire.sandbox.fault("F50", seconds=600, how="503")
    assert wire.refund(payment).status_code == 503
    assert wire.send("GET", f"/v1/payment_intents/{payment}").status_code == 503
    assert wire.send("GET", "/orders/amber/ORD-none").status_code == 404, "the order system is another house"
    wire.sandbox.advance(601)
    assert wire.refund(payment).status_code == 200
    assert wire.moved(payment) == 100


def test_a_fault_meets_only_what_it_is_for_and_as_often_as_asked(wire: Wire) -> None:
    first, second = wire.payment(), wire.payment()
    wire.sandbox.fault("F12", times=2, match={"payment_ref": first, "operation_id": "op-x"})
    assert wire.refund(first, operation="op-y").status_code == 200
    assert wire.refund(second, operation="op-x").status_code == 200
    assert [wire.refund(first, operation="op-x").status_code for _ in range(3)] == [429, 429, 200]
    wire.sandbox.fault("F12", match={"idempotency_key": "only-this"})
    assert [wire.refund(first, 1, key=k).status_code for k in ("other", "only-this")] == [200, 429]


def test_faults_of_different_kinds_meet_in_one_request(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F21", payment, seconds=50)
    arm(wire, "F4", payment)
    arm(wire, "F17", payment)
    with pytest.raises(requests.ConnectionError):
        wire.refund(payment, key="both")
    assert [r["status"] for r in wire.sandbox.refunds(payment)] == ["pending"]
    assert set(last(wire, payment)["fault"].split(",")) == {"F21", "F4", "F17"}


def test_cleared_faults_are_gone(wire: Wire) -> None:
    payment = wire.payment()
    arm(wire, "F12", payment)
    assert wire.sandbox.control("DELETE", "/faults").json() == {"cleared": 1}
    assert wire.refund(payment).status_code == 200
