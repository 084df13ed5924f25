"""The provider's side of the sandbox: the part of Stripe v1 that refunds need."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.sandbox.conftest import Wire
from tests.sandbox_process import wait_until


def test_a_refund_is_made_and_read_again(wire: Wire) -> None:
    payment = wire.payment()
    made = wire.refund(payment, 300, key="p-1", reason="duplicate")
    assert made.status_code == 200 and made.headers["request-id"].startswith("req_")
    refund = made.json()
    expected = {
        "object": "refund", "amount": 300, "currency": "usd", "payment_intent": payment, "status": "succeeded",
        "reason": "duplicate", "metadata": {"operation_id": "op-1"},
    }
    assert {name: refund[name] for name in expected} == expected
    assert wire.send("GET", f"/v1/refunds/{refund['id']}").json() == refund
    told = wire.sandbox.refunds(payment)
    assert [(r["id"], r["amount_minor"], r["currency"], r["status"], r["operation_id"], r["idempotency_key"])
            for r in told] == [(refund["id"], 300, "USD", "succeeded", "op-1", "p-1")]
    assert told[0]["created"] == refund["created"]


def test_no_amount_means_all_that_is_left(wire: Wire) -> None:
    payment = wire.payment(1000)
    wire.refund(payment, 300)
    assert wire.refund(payment, None).json()["amount"] == 700


def test_a_payment_tells_its_totals(wire: Wire) -> None:
    payment = wire.payment(1000)
    wire.refund(payment, 300)
    plain = wire.send("GET", f"/v1/payment_intents/{payment}").json()
    assert (plain["amount_received"], plain["latest_charge"]) == (1000, "ch_" + payment[3:])
    for expand in ("expand[]=latest_charge", "expand[0]=latest_charge", "expand%5B%5D=latest_charge"):
        charge = wire.send("GET", f"/v1/payment_intents/{payment}?{expand}").json()["latest_charge"]
        assert (charge["amount_captured"], charge["amount_refunded"], charge["refunded"]) == (1000, 300, False)


def test_more_than_is_left_is_refused_in_stripes_words(wire: Wire) -> None:
    payment = wire.payment(1000)
    wire.refund(payment, 600)
    error = wire.refund(payment, 500).json()["error"]
    assert "greater than unrefunded amount" in error["message"] and "code" not in error
    wire.refund(payment, 400)
    assert wire.refund(payment, 1).json()["error"]["code"] == "charge_already_refunded"
    assert wire.moved(payment) == 1000


def test_things_that_are_not_there_are_missing(wire: Wire) -> None:
    for method, path in (("GET", "/v1/refunds/re_none"), ("GET", "/v1/payment_intents/pi_none"),
                         ("POST", "/v1/refunds/re_none/cancel")):
        answer = wire.send(method, path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "resource_missing")
    assert wire.refund("pi_none").json()["error"]["code"] == "resource_missing"
    assert wire.send("GET", "/v1/customers").status_code == 404
    assert wire.send("GET", "/elsewhere").status_code == 404


def test_a_request_without_a_key_is_not_let_in(wire: Wire) -> None:
    payment = wire.payment()
    for key in (None, "pk_test_public"):
        wire.key = key
        answer = wire.refund(payment, key="locked-out")
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "invalid_request_error")
        assert answer.headers["request-id"]
    wire.key = "sk_test_wire"
    assert wire.refund(payment, key="locked-out").status_code == 200


@pytest.mark.parametrize(("amount", "more"), [
    ("0", {}), ("-5", {}), ("1.5", {}), ("1e3", {}), ("", {}), ("\uff19", {}), ("9" * 30, {}), (True, {}),
    (100, {"reason": "because"}), (100, {"colour": "red"}), (100, {"metadata[x]": "y" * 501}),
    (100, {"payment_intent": ""}),
])
def test_a_request_that_fails_validation_is_not_remembered(wire: Wire, amount: object, more: dict[str, str]) -> None:
    payment = wire.payment()
    key = f"v-{payment}"
    bad = wire.send("POST", "/v1/refunds", key=key, data={"payment_intent": payment, "amount": str(amount), **more})
    assert (bad.status_code, bad.json()["error"]["type"]) == (400, "invalid_request_error")
    assert wire.moved(payment) == 0
    assert wire.refund(payment, key=key).status_code == 200


def test_a_body_that_is_no_form_is_refused(wire: Wire) -> None:
    for data in (b"\xff\xfe=%ff", b"&".join(b"a=1" for _ in range(500))):
        assert wire.send("POST", "/v1/refunds", data=data).status_code == 400


@pytest.mark.parametrize(("currency", "amount", "moved"), [
    ("ISK", 25000, 250), ("UGX", 100, 1), ("MGA", 5, 500), ("KWD", 1230, 1230), ("JPY", 77, 77),
])
def test_amounts_are_counted_as_stripe_counts_them(wire: Wire, currency: str, amount: int, moved: int) -> None:
    payment = wire.payment(10000, currency)
    assert wire.refund(payment, amount).json()["amount"] == amount
    assert wire.moved(payment) == moved


@pytest.mark.parametrize(("currency", "amount"), [("ISK", 150), ("UGX", 99), ("KWD", 1234)])
def test_amounts_that_stripe_does_not_move_are_refused(wire: Wire, currency: str, amount: int) -> None:
    assert wire.refund(wire.payment(10000, currency), amount).json()["error"]["code"] == "invalid_amount"


def test_a_key_replays_its_first_answer(wire: Wire) -> None:
    payment = wire.payment()
    first, second = wire.refund(payment, key="r-1"), wire.refund(payment, key="r-1")
    assert first.content == second.content
    assert "idempotent-replayed" not in first.headers and second.headers["idempotent-replayed"] == "true"
    assert wire.moved(payment) == 100


def test_a_key_replays_a_refusal_too(wire: Wire) -> None:
    payment = wire.payment(1000)
    first = wire.refund(payment, 2000, key="r-2")
    second = wire.refund(payment, 2000, key="r-2")
    assert first.status_code == second.status_code == 400 and second.headers["idempotent-replayed"] == "true"


def test_a_key_with_another_body_is_an_error(wire: Wire) -> None:
    payment = wire.payment()
    wire.refund(payment, 100, key="r-3")
    answer = wire.refund(payment, 101, key="r-3")
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "idempotency_error")
    assert wire.moved(payment) == 100


def test_a_key_is_forgotten_after_a_day(wire: Wire) -> None:
    payment = wire.payment()
    wire.refund(payment, key="r-4")
    wire.sandbox.advance(24 * 3600 + 1)
    wire.refund(payment, key="r-4")
    assert wire.moved(payment) == 200


def test_a_key_in_use_is_a_conflict_until_the_first_request_is_through(wire: Wire) -> None:
    payment = wire.payment()
    wire.sandbox.fault("F5", match={"payment_ref": payment}, commit_after=1.5, seconds=0)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(Wire(wire.sandbox).refund, payment, key="r-5")
        wait_until(lambda: wire.sandbox.requests(payment_ref=payment))
        second = wire.refund(payment, key="r-5")
        assert (second.status_code, second.json()["error"]["code"]) == (409, "idempotency_key_in_use")
        assert first.result().status_code == 200
    assert wire.refund(payment, key="r-5").headers["idempotent-replayed"] == "true"
    assert wire.moved(payment) == 100


def test_twenty_at_once_under_one_key_move_money_once(wire: Wire) -> None:
    payment = wire.payment()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: Wire(wire.sandbox).refund(payment, key="r-6").status_code, range(20)))
    assert set(answers) <= {200, 409} and 200 in answers
    assert wire.moved(payment) == 100


def test_the_list_is_newest_first_and_goes_page_by_page(wire: Wire) -> None:
    payment = wire.payment(1000)
    ids = [wire.refund(payment, n).json()["id"] for n in range(1, 6)]
    seen: list[str] = []
    more, after = True, ""
    while more:
        page = wire.send("GET", f"/v1/refunds?payment_intent={payment}&limit=2{after}").json()
        seen += [r["id"] for r in page["data"]]
        more, after = page["has_more"], f"&starting_after={page['data'][-1]['id']}"
    assert seen == ids[::-1]
    created = wire.send("GET", f"/v1/refunds/{ids[0]}").json()["created"]
    query = f"/v1/refunds?payment_intent={payment}&created[gte]="
    assert len(wire.send("GET", query + str(created)).json()["data"]) == 5
    assert wire.send("GET", query + str(created + 100)).json()["data"] == []


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "limit=-1", "starting_after=re_none", "created[gte]=x"]
)
def test_a_list_that_cannot_be_is_refused(wire: Wire, query: str) -> None:
    assert wire.send("GET", f"/v1/refunds?{query}").status_code == 400


def test_only_what_waits_for_somebody_can_be_cancelled(wire: Wire) -> None:
    payment = wire.payment()
    wire.sandbox.fault("F22", match={"payment_ref": payment})
    waiting = wire.refund(payment).json()
    assert waiting["status"] == "requires_action"
    assert wire.send("POST", f"/v1/refunds/{waiting['id']}/cancel").json()["status"] == "canceled"
    assert wire.send("POST", f"/v1/refunds/{waiting['id']}/cancel").status_code == 400
    done = wire.refund(payment).json()
    assert wire.send("POST", f"/v1/refunds/{done['id']}/cancel").status_code == 400
    assert wire.moved(payment) == 100
