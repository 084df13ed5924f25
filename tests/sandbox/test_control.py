"""The control plane: its contract, and a sentence for every mistake."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from runtime_app.sandbox.answer_faults import ANSWERS
from runtime_app.sandbox.fault_table import FAULTS
from runtime_app.sandbox.plan_faults import PLANS
from tests.sandbox.conftest import Wire

ORDER: dict[str, Any] = {
    "tenant": "amber", "order_ref": "ORD-X", "currency": "USD",
    "payments": [{"payment_ref": "pi_x", "captured_minor": 5}],
}


def test_the_overview_lists_every_fault_with_its_help(wire: Wire) -> None:
    told = wire.sandbox.control("GET", "").json()
    assert [f["fault"] for f in told["faults"]] == list(FAULTS)
    assert all(f["help"].endswith(".") for f in told["faults"])
    assert all(p["help"] for f in told["faults"] for p in f["parameters"].values())
    assert "POST /_sandbox/faults" in told["addresses"]


def test_every_fault_in_the_table_does_something() -> None:
    elsewhere = {"F1", "F16", "F17", "F25", "F26", "F33", "F34", *(f"F{n}" for n in range(36, 50))}
    assert set(FAULTS) == set(ANSWERS) | set(PLANS) | elsewhere
    assert list(FAULTS) == [f"F{n}" for n in range(1, 51)]


def test_an_armed_fault_is_shown_until_it_is_used_up(wire: Wire) -> None:
    payment = wire.payment()
    wire.sandbox.fault("F12", times=2, match={"payment_ref": payment})
    wire.refund(payment)
    armed = wire.sandbox.control("GET", "").json()["armed"]
    assert [(a["fault"], a["times_left"], a["match"]) for a in armed] == [("F12", 1, {"payment_ref": payment})]
    wire.refund(payment)
    assert wire.sandbox.control("GET", "").json()["armed"] == []


@pytest.mark.parametrize("asked", [
    {}, {"fault": "F99"}, {"fault": 4}, {"fault": None}, {"fault": "F4", "times": 0}, {"fault": "F4", "times": True},
    {"fault": "F4", "times": 1.5}, {"fault": "F4", "times": "1"}, {"fault": "F4", "colour": "red"},
    {"fault": "F4", "match": []}, {"fault": "F4", "match": {"payment_ref": 5}},
    {"fault": "F4", "match": {"colour": "x"}},
    {"fault": "F4", "how": "gently"}, {"fault": "F4", "how": 1}, {"fault": "F3", "seconds": -1},
    {"fault": "F3", "seconds": "5"}, {"fault": "F3", "seconds": True}, {"fault": "F8", "status": 200},
    {"fault": "F4", "on": "moon"}, {"fault": "F4", "on": []}, {"fault": "F4", "on": [5]},
    {"fault": "F20", "on": "list"},
    {"fault": "F33"}, {"fault": "F33", "match": {"payment_ref": "pi_x"}, "amount_minor": 0},
    {"fault": "F33", "match": {"payment_ref": "pi_x"}, "amount_minor": 10**30},
    {"fault": "F1", "match": {"payment_ref": "x"}}, {"fault": "F1", "on": "list"},
    {"fault": "F33", "on": "any"}, {"fault": "F20", "holds_key": "yes"}, {"fault": ["F4"]},
    {"fault": "F4", "match": {"payment_ref": "\ud800", "x": "y"}},
], ids=str)
def test_a_fault_that_cannot_be_is_refused_with_a_sentence(wire: Wire, asked: dict[str, Any]) -> None:
    answer = wire.sandbox.control("POST", "/faults", asked)
    assert answer.status_code in (409, 422)
    assert answer.json()["error"].endswith(".")
    assert wire.sandbox.control("GET", "").json()["armed"] == []


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'"F4"'], ids=lambda b: repr(b[:6])
)
@pytest.mark.parametrize(("method", "path"), [
    ("POST", "/faults"), ("POST", "/orders"), ("PATCH", "/orders/ORD-1"), ("POST", "/clock"),
    ("PATCH", "/refunds/re_1"),
])
def test_a_body_that_is_no_object_is_refused(wire: Wire, method: str, path: str, body: bytes) -> None:
    answer = requests.request(method, f"{wire.sandbox.control_url}/_sandbox{path}", data=body, timeout=20)
    assert answer.status_code == 422 and answer.json()["error"].endswith(".")


@pytest.mark.parametrize(("method", "path", "status"), [
    ("GET", "/nothing", 404), ("GET", "/faults", 405), ("PUT", "/orders", 405), ("PATCH", "/orders/ORD-none", 422),
    ("GET", "/refunds?colour=red", 422), ("GET", "/requests?after=x", 422), ("GET", "/requests?limit=-1", 422),
])
def test_an_address_that_is_not_there_says_so(wire: Wire, method: str, path: str, status: int) -> None:
    answer = wire.sandbox.control(method, path, {} if method == "PATCH" else None)
    assert answer.status_code == (404 if "none" in path else status)
    assert answer.json()["error"].endswith(".")


@pytest.mark.parametrize("change", [
    {"tenant": None}, {"tenant": ""}, {"tenant": "a b"}, {"order_ref": 5}, {"order_ref": "x" * 200},
    {"order_ref": "a/b"}, {"currency": "usd"}, {"currency": "ZZZ"}, {"currency": None}, {"payments": []},
    {"payments": {}}, {"payments": [5]},
    {"payments": [{"payment_ref": "pi_x"}]}, {"payments": [{"payment_ref": "pi_x", "captured_minor": True}]},
    {"payments": [{"payment_ref": "pi_x", "captured_minor": 5.0}]},
    {"payments": [{"payment_ref": "pi_x", "captured_minor": 0}]},
    {"payments": [{"payment_ref": "pi_x", "captured_minor": 10**400}]},
    {"payments": [{"payment_ref": "pi_x", "captured_minor": 5, "more": 1}]}, {"payments": ORDER["payments"] * 2},
    {"destination": 5}, {"note": "x" * 3000}, {"destination": "\ud800"}, {"colour": "red"},
    {"currency": "MGA", "payments": [{"payment_ref": "pi_x", "captured_minor": 150}]},
], ids=str)
def test_an_order_that_cannot_be_is_refused(wire: Wire, change: dict[str, Any]) -> None:
    answer = wire.sandbox.control("POST", "/orders", ORDER | change)
    assert answer.status_code == 422 and answer.json()["error"].endswith(".")
    assert wire.send("GET", "/orders/amber/ORD-X").status_code == 404


def test_the_same_order_may_be_made_again_and_another_may_not(wire: Wire) -> None:
    asked = {**ORDER, "order_ref": "ORD-Y", "payments": [{"payment_ref": "pi_y", "captured_minor": 5}]}
    assert [wire.sandbox.control("POST", "/orders", asked).status_code for _ in range(2)] == [201, 200]
    assert wire.sandbox.control("POST", "/orders", asked | {"currency": "EUR"}).status_code == 409
    assert wire.sandbox.control("POST", "/orders", asked | {"order_ref": "ORD-Z"}).status_code == 409


def test_every_change_of_an_order_is_a_new_version(wire: Wire) -> None:
    payment = wire.payment(1000)
    order = "ORD-" + payment[3:]
    assert wire.sandbox.patch_order(order, note="n")["version"] == 2
    assert wire.sandbox.patch_order(order, destination="card 1")["version"] == 3
    changed = wire.sandbox.patch_order(order, outside_refund={"payment_ref": payment, "amount_minor": 400})
    assert (changed["version"], changed["note"], changed["destination"]) == (4, "n", "card 1")
    assert changed["payments"][0]["refunds"] == [{"amount_minor": 400, "operation_id": None}]
    assert wire.moved(payment) == 400


@pytest.mark.parametrize("change", [
    {}, {"colour": "red"}, {"note": 5}, {"destination": []}, {"outside_refund": 5}, {"outside_refund": {}},
    {"outside_refund": {"payment_ref": "pi_elsewhere", "amount_minor": 1}}, {"tenant": "a b", "note": "x"},
], ids=str)
def test_a_change_that_cannot_be_changes_nothing(wire: Wire, change: dict[str, Any]) -> None:
    payment = wire.payment(1000)
    answer = wire.sandbox.control("PATCH", f"/orders/ORD-{payment[3:]}", change)
    assert answer.status_code == 422 and answer.json()["error"].endswith(".")
    assert wire.send("GET", f"/orders/amber/ORD-{payment[3:]}").json()["version"] == 1


def test_more_than_is_left_cannot_be_refunded_outside(wire: Wire) -> None:
    payment = wire.payment(1000)
    change = {"note": "x", "outside_refund": {"payment_ref": payment, "amount_minor": 1001}}
    assert wire.sandbox.control("PATCH", f"/orders/ORD-{payment[3:]}", change).status_code == 409
    assert wire.send("GET", f"/orders/amber/ORD-{payment[3:]}").json()["version"] == 1


def test_an_order_ref_of_two_tenants_needs_the_tenant(wire: Wire) -> None:
    for tenant in ("amber", "birch"):
        wire.sandbox.order("ORD-both", tenant=tenant, payments={f"pi_both_{tenant}": 5})
    assert wire.sandbox.control("PATCH", "/orders/ORD-both", {"note": "x"}).status_code == 422
    assert wire.sandbox.patch_order("ORD-both", tenant="birch", note="x")["version"] == 2
    assert wire.send("GET", "/orders/amber/ORD-both").json()["version"] == 1


def test_the_log_says_what_was_asked_and_what_was_answered(wire: Wire) -> None:
    payment = wire.payment(1000)
    wire.refund(payment, 5, operation="op-log", key="key-log")
    wire.send("GET", f"/v1/refunds?payment_intent={payment}")
    sent, listed = wire.sandbox.requests(payment_ref=payment)
    told = {"method": "POST", "path": "/v1/refunds", "idempotency_key": "key-log", "operation_id": "op-log",
            "answered": 200, "fault": None}
    assert {name: sent[name] for name in told} == told
    assert (listed["method"], listed["path"]) == ("GET", f"/v1/refunds?payment_intent={payment}")
    assert wire.sandbox.requests(operation_id="op-log") == [sent]
    assert sent not in wire.sandbox.requests(after=str(sent["id"]))


def test_the_control_port_serves_no_money(wire: Wire) -> None:
    signed_in = {"Authorization": "Bearer sk_x"}
    answer = requests.get(f"{wire.sandbox.control_url}/v1/refunds", headers=signed_in, timeout=20)
    assert answer.status_code == 404
    assert requests.get(f"{wire.sandbox.url}/_sandbox", timeout=20).status_code == 200
