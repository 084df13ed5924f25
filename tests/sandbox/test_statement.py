"""The statement: balance transactions as Stripe lists them, read by the official SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import stripe

from tests.sandbox.conftest import Tenant, Wire

URL = "/v1/balance_transactions"


@pytest.fixture
def client(tenant: Tenant) -> Iterator[stripe.StripeClient]:
    http: Any = stripe.RequestsClient(timeout=20)
    yield stripe.StripeClient(str(tenant.wire.key), base_addresses={"api": tenant.wire.sandbox.url},
                              max_network_retries=0, http_client=http)
    http.close()


def kinds(wire: Wire) -> list[tuple[str, int]]:
    return [(line["type"], line["amount"]) for line in wire.listed(URL)]


def test_the_official_sdk_reads_the_statement(tenant: Tenant, client: stripe.StripeClient) -> None:
    payment = tenant.payment()
    refund = tenant.wire.refund(payment, 250, operation="op-line").json()
    asked: Any = {"created": {"gte": refund["created"], "lt": refund["created"] + 5}, "limit": 100,
                  "expand": ["data.source"], "include": ["total_count"]}
    page = client.v1.balance_transactions.list(params=asked)
    [line] = page.data
    assert (line.id, line.amount, line.net, line.fee, line.currency) == (refund["balance_transaction"], -250, -250, 0,
                                                                        "usd")
    assert (line.type, line.reporting_category, line.created) == ("refund", "refund", refund["created"])
    assert line.available_on > line.created and line.status == "pending"
    source: Any = line.source
    assert (source["id"], source["metadata"]["operation_id"], source["payment_intent"]) == (refund["id"], "op-line",
                                                                                           payment)
    assert page["total_count"] == 1 and page.has_more is False


def test_the_official_sdk_finds_a_refund_by_its_key(tenant: Tenant, client: stripe.StripeClient) -> None:
    """Money 3.2: an event's `request.idempotency_key` finds a refund whose metadata was lost (F31)."""
    payment = tenant.payment()
    tenant.wire.sandbox.fault("F31", match={"payment_ref": payment})
    refund = tenant.wire.refund(payment, key="key-31").json()
    tenant.wire.refund(payment, key="key-32")
    events = client.v1.events.list(params={"type": "refund.created", "created": {"gte": refund["created"]}}).data
    found: list[Any] = [e.data.object for e in events if e.request and e.request.idempotency_key == "key-31"]
    assert [one["id"] for one in found] == [refund["id"]]


def test_money_is_booked_when_it_moves(wire: Wire, tenant: Tenant) -> None:
    """C06: pending money has left; refunds that fail bring it back; what never moved is not booked."""
    payment = tenant.payment(10_000)

    def made(code: str, amount: int, **more: Any) -> str:
        wire.sandbox.fault(code, match={"payment_ref": payment}, **more)
        return str(tenant.wire.refund(payment, amount).json()["id"])

    pending, waiting, no_balance = made("F21", 1), made("F22", 2), made("F24", 3)
    assert kinds(tenant.wire) == [("payment_refund", -1)]
    for refund in (no_balance, waiting):
        wire.sandbox.set_refund(refund, "succeeded")
    wire.sandbox.set_refund(pending, "failed")
    assert kinds(tenant.wire) == [("refund_failure", 1), ("refund", -2), ("refund", -3), ("payment_refund", -1)]
    failed = tenant.wire.send("GET", f"/v1/refunds/{pending}").json()
    assert failed["failure_balance_transaction"] == tenant.wire.listed(URL)[0]["id"]
    wire.sandbox.set_refund(pending, "succeeded")
    assert kinds(tenant.wire)[0] == ("refund", -1), "and out again"
    assert len({line["id"] for line in tenant.wire.listed(URL)}) == 5


def test_a_refund_that_fails_at_once_is_not_booked(wire: Wire, tenant: Tenant) -> None:
    payment = tenant.payment()
    wire.sandbox.fault("F21", match={"payment_ref": payment}, seconds=0, then="failed")
    assert tenant.wire.refund(payment).json()["balance_transaction"] is None
    assert kinds(tenant.wire) == []


def test_outside_refunds_and_disputes_are_booked_too(wire: Wire, tenant: Tenant) -> None:
    """C10, F33, F34: a line without an operation of ours."""
    payment = tenant.payment(500)
    wire.sandbox.fault("F33", match={"payment_ref": payment}, amount_minor=200)
    wire.sandbox.fault("F34", match={"payment_ref": payment})
    dispute, outside = tenant.wire.listed(URL, **{"expand[]": "data.source"})
    assert (dispute["type"], dispute["amount"], dispute["reporting_category"]) == ("adjustment", -300, "dispute")
    assert dispute["source"]["object"] == "dispute" and dispute["source"]["payment_intent"] == payment
    assert outside["amount"] == -200 and outside["source"]["metadata"] == {}


@pytest.mark.parametrize(("currency", "amount", "wire_amount"), [
    ("MGA", 500, -5), ("ISK", 25, -2500), ("KWD", 10, -10),
])
def test_lines_count_as_the_wire_counts(
    wire: Wire, tenant: Tenant, currency: str, amount: int, wire_amount: int
) -> None:
    """C41: the provider's unit, in both directions."""
    payment = tenant.payment(10_000, currency)
    refund = tenant.wire.refund(payment, -wire_amount).json()["id"]
    wire.sandbox.set_refund(refund, "failed")
    assert [line["amount"] for line in tenant.wire.listed(URL)] == [-wire_amount, wire_amount]
    assert wire.sandbox.refunds(payment, all=True)[0]["amount_minor"] == amount


@pytest.mark.parametrize("path", ["/v1/refunds", URL, "/v1/events"])
def test_account_wide_lists_go_page_by_page_newest_first(tenant: Tenant, path: str) -> None:
    payment = tenant.payment()
    for amount in range(1, 6):
        tenant.wire.refund(payment, amount)
    query = {"type": "refund.created"} if path == "/v1/events" else {}
    whole = [one["id"] for one in tenant.wire.listed(path, limit="100", **query)]
    seen: list[str] = []
    while page := tenant.wire.listed(path, limit="2", **query, **({"starting_after": seen[-1]} if seen else {})):
        assert len(page) <= 2
        seen += [one["id"] for one in page]
    assert seen == whole and len(set(seen)) == 5
    created = [one["created"] for one in tenant.wire.listed(path)]
    assert created == sorted(created, reverse=True)


@pytest.mark.parametrize("path", ["/v1/refunds", URL, "/v1/events"])
def test_lists_are_cut_by_time(tenant: Tenant, path: str) -> None:
    payment, times = tenant.payment(), []
    for _ in range(3):
        times.append(tenant.wire.refund(payment).json()["created"])
        tenant.wire.sandbox.advance(100)
    query = {"type": "charge.refunded"} if path == "/v1/events" else {}

    def cut(**bounds: int) -> int:
        asked = {f"created[{name}]": str(at) for name, at in bounds.items()}
        return len(tenant.wire.listed(path, **asked, **query))

    assert cut(gte=times[1]) == 2 and cut(gt=times[1]) == 1
    assert cut(lt=times[1]) == 1 and cut(lte=times[1]) == 2
    assert cut(gte=times[0], lt=times[2]) == 2


def test_the_statement_is_filtered_by_type(wire: Wire, tenant: Tenant) -> None:
    refund = tenant.wire.refund(tenant.payment()).json()["id"]
    wire.sandbox.set_refund(refund, "failed")
    assert [line["amount"] for line in tenant.wire.listed(URL, type="refund_failure")] == [100]
    assert tenant.wire.listed(URL, type="payout") == tenant.wire.listed("/v1/events", type="payout.paid") == []


@pytest.mark.parametrize("path", ["/v1/refunds", URL, "/v1/events"])
@pytest.mark.parametrize("query", [
    "limit=0", "limit=101", "limit=x", "starting_after=nothing", "created[gte]=x", "created[lt]=-1", "colour=red",
    "created[lte]=", "starting_after=txn_xs9999999999999999999", "starting_after=evt_0", "limit=%ff",
    "starting_after=txn_s1",
])
def test_a_list_that_cannot_be_is_refused(wire: Wire, path: str, query: str) -> None:
    answer = wire.send("GET", f"{path}?{query}")
    assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"


def test_a_list_needs_a_key(wire: Wire) -> None:
    wire.key = None
    for path in (URL, "/v1/events"):
        assert wire.send("GET", path).status_code == 401
