"""The order system's adapter: one suite for the sandbox's orders and those in memory, and hostile answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol
from uuid import uuid4

import pytest

from runtime_app.adapters.orders import build
from runtime_app.adapters.orders.memory import MemoryOrders
from runtime_app.adapters.orders.types import (
    OrderMissing,
    OrderRefund,
    OrderSnapshot,
    OrderSystem,
    OrderUnavailable,
)
from runtime_app.money import Money
from tests.adapters.providers import InMemory, Provider, Refunding, StripeAtSandbox
from tests.sandbox_process import SandboxProcess


class Shop(Protocol):
    @property
    def orders(self) -> OrderSystem: ...

    @property
    def provider(self) -> Provider: ...

    def add(self, order_ref: str, currency: str, payments: dict[str, int]) -> None: ...

    def note(self, order_ref: str, text: str) -> None: ...


class SandboxShop:
    def __init__(self, sandbox: SandboxProcess) -> None:
        self.sandbox = sandbox
        self.provider: Provider = StripeAtSandbox(sandbox)
        self.orders: OrderSystem = build("sandbox", base_url=sandbox.url, connect_timeout=5)

    def add(self, order_ref: str, currency: str, payments: dict[str, int]) -> None:
        self.sandbox.order(order_ref, currency=currency, payments=payments, destination="card 4242")

    def note(self, order_ref: str, text: str) -> None:
        self.sandbox.patch_order(order_ref, note=text)


class MemoryShop:
    def __init__(self) -> None:
        memory = InMemory()
        self.provider: Provider = memory
        self._orders = MemoryOrders(memory.payments)
        self.orders: OrderSystem = self._orders

    def add(self, order_ref: str, currency: str, payments: dict[str, int]) -> None:
        self._orders.add_order("amber", order_ref, currency, payments, destination="card 4242")

    def note(self, order_ref: str, text: str) -> None:
        self._orders.change("amber", order_ref, note=text)


@pytest.fixture(params=["sandbox", "memory"])
def shop(request: pytest.FixtureRequest) -> Shop:
    return MemoryShop() if request.param == "memory" else SandboxShop(request.getfixturevalue("sandbox"))


def read(shop: Shop, order_ref: str) -> OrderSnapshot:
    snapshot = shop.orders.read_order("amber", order_ref, timeout=20)
    assert isinstance(snapshot, OrderSnapshot), snapshot
    return snapshot


def names() -> tuple[str, str, str]:
    mark = uuid4().hex[:8]
    return f"ORD-{mark}", f"pi_{mark}a", f"pi_{mark}b"


def test_an_order_is_read_as_it_is(shop: Shop) -> None:
    order, first, second = names()
    shop.add(order, "JPY", {first: 3000, second: 7000})
    seen = read(shop, order)
    assert (seen.order_ref, seen.version, seen.currency, seen.destination, seen.note) == (
        order, 1, "JPY", "card 4242", None)
    assert [(p.payment_ref, p.captured_minor, p.refunds) for p in seen.payments] == [
        (first, 3000, ()), (second, 7000, ())]
    assert seen.as_of.tzinfo is not None


def test_an_order_that_is_not_there_is_missing(shop: Shop) -> None:
    order, first, _ = names()
    shop.add(order, "USD", {first: 100})
    assert isinstance(shop.orders.read_order("amber", "ORD-none", timeout=20), OrderMissing)
    assert isinstance(shop.orders.read_order("birch", order, timeout=20), OrderMissing)


def test_a_note_makes_a_new_version(shop: Shop) -> None:
    order, first, _ = names()
    shop.add(order, "USD", {first: 100})
    shop.note(order, "called back")
    assert (read(shop, order).version, read(shop, order).note) == (2, "called back")


def test_our_refund_and_one_made_outside_are_told_apart(shop: Shop) -> None:
    """M20: what was refunded outside of us is a material fact, our own refund is not."""
    order, first, _ = names()
    shop.add(order, "USD", {first: 1000})
    ours = Refunding(shop.provider, first, Money(300, "USD"))
    ours.send()
    shop.provider.refund_outside(first, 200)
    seen = read(shop, order)
    assert seen.payments[0].refunds == (OrderRefund(300, str(ours.operation_id)), OrderRefund(200, None))
    assert seen.version == 3


def test_a_pending_refund_counts_and_a_failed_one_does_not(shop: Shop) -> None:
    order, first, _ = names()
    shop.add(order, "USD", {first: 1000})
    for failed in (False, True):
        shop.provider.goes_wrong("F21", first, failed=failed)
        Refunding(shop.provider, first, Money(300, "USD")).send()
    assert [r.amount_minor for r in read(shop, order).payments[0].refunds] == [300]


def test_a_refund_is_told_once_however_often_it_is_told(shop: Shop) -> None:
    order, first, _ = names()
    shop.add(order, "USD", {first: 1000})
    operation = str(uuid4())

    def tell(amount: int = 300, to: str = order, status: str = "succeeded") -> str | None:
        return shop.orders.record_refund(
            "amber", to, operation_id=operation, payment_ref=first, amount_minor=amount, status=status,
            provider_ref="re_1", timeout=20,
        )

    assert [tell(), tell(), tell()] == [None, None, None]
    assert read(shop, order).version == 2
    assert tell(amount=301) == "status 409"
    assert tell(to="ORD-none") == "status 404"
    assert tell(status="failed") is None
    assert read(shop, order).payments[0].refunds == (), "telling moves no money"


GOOD: dict[str, Any] = {
    "order_ref": "ORD-H", "version": 3, "as_of": "2026-05-04T10:00:00+00:00", "currency": "EUR", "destination": None,
    "note": None, "payments": [{"payment_ref": "pi_1", "captured_minor": 5, "refunds": [
        {"amount_minor": 1, "operation_id": None}]}],
}


def payment(**changes: Any) -> dict[str, Any]:
    return {"payments": [GOOD["payments"][0] | changes]}


@pytest.fixture
def answer(sandbox: SandboxProcess) -> Callable[[str], Any]:
    """What the adapter makes of an order system that answers 200 with this body."""
    orders = build("sandbox", base_url=sandbox.url, connect_timeout=5)

    def asked(body: str) -> Any:
        sandbox.fault("F7", on="order", body=body)
        return orders.read_order("amber", "ORD-H", timeout=20)

    return asked


def test_the_answer_that_the_hostile_ones_are_made_from_is_good(answer: Callable[[str], Any]) -> None:
    assert isinstance(answer(json.dumps(GOOD)), OrderSnapshot)


@pytest.mark.parametrize("change", [
    {"order_ref": "ORD-other"}, {"version": "3"}, {"version": True}, {"version": -1}, {"version": 10**30},
    {"version": 3.0}, {"as_of": "yesterday"}, {"as_of": "2026-05-04T10:00:00"}, {"as_of": 5}, {"as_of": None},
    {"currency": "eur"}, {"currency": "ZZZ"}, {"currency": None}, {"destination": 5}, {"note": ["x"]},
    {"note": "zero \0 byte"}, {"destination": "half \ud800"}, {"note": "x" * 5000}, {"payments": None},
    {"payments": {}}, {"payments": ["pi_1"]}, {"payments": GOOD["payments"] * 2},
    payment(payment_ref=""), payment(payment_ref="x" * 201), payment(payment_ref=None), payment(captured_minor=True),
    payment(captured_minor=100.0), payment(captured_minor="100"), payment(captured_minor=-1),
    payment(captured_minor=2**63), payment(refunds=None), payment(refunds=[{"amount_minor": 0}]),
    payment(refunds=[{"amount_minor": 1, "operation_id": 7}]), payment(refunds=[5]),
], ids=lambda c: str(c)[:50])
def test_a_wrong_field_makes_the_whole_answer_useless(answer: Callable[[str], Any], change: dict[str, Any]) -> None:
    """M07, M09: an amount of the wrong type is never taken for one."""
    result = answer(json.dumps(GOOD | change))
    assert isinstance(result, OrderUnavailable) and "unreadable" in result.cause


@pytest.mark.parametrize("body", [
    "", "null", "[]", "{", "[" * 90_000, json.dumps(GOOD)[:-1] + ', "version": 4}',
    json.dumps(GOOD)[:-1] + ', "more": NaN}',
], ids=lambda b: b[:9])
def test_an_answer_that_is_no_object_is_useless(answer: Callable[[str], Any], body: str) -> None:
    assert isinstance(answer(body), OrderUnavailable)


@pytest.mark.parametrize(("code", "more"), [
    ("F2", {}), ("F2", {"how": "reset"}), ("F4", {}), ("F6", {}), ("F8", {}), ("F3", {"seconds": 20}), ("F12", {}),
    ("F18", {}), ("F1", {}),
], ids=str)
def test_trouble_on_the_way_is_said_and_not_raised(sandbox: SandboxProcess, code: str, more: dict[str, Any]) -> None:
    order, first, _ = names()
    sandbox.order(order, payments={first: 100})
    orders = build("sandbox", base_url=sandbox.url, connect_timeout=5)
    if code == "F1":
        sandbox.fault(code)
    else:
        sandbox.fault(code, on="orders", times=2, **more)
    assert isinstance(orders.read_order("amber", order, timeout=0.4), OrderUnavailable)
    told = orders.record_refund("amber", order, operation_id="op", payment_ref=first, amount_minor=1,
                                status="succeeded", provider_ref=None, timeout=0.4)
    assert told


@pytest.mark.parametrize("ref", ["..", ".", ""])
def test_a_reference_that_would_shorten_the_address_is_not_asked_for(sandbox: SandboxProcess, ref: str) -> None:
    orders = build("sandbox", base_url=sandbox.url, connect_timeout=5)
    asked = len(sandbox.requests())
    assert isinstance(orders.read_order("amber", ref, timeout=20), OrderUnavailable)
    assert isinstance(orders.read_order(ref, "ORD-1", timeout=20), OrderUnavailable)
    assert len(sandbox.requests()) == asked


@pytest.mark.parametrize("ref", ["a/../b", "x?y=1", "é", "\ud800", "a b", "%2e%2e", "x\r\ny"])
def test_a_strange_reference_reaches_no_other_order(sandbox: SandboxProcess, ref: str) -> None:
    orders = build("sandbox", base_url=sandbox.url, connect_timeout=5)
    assert isinstance(orders.read_order("amber", ref, timeout=20), OrderMissing | OrderUnavailable)
    assert isinstance(orders.read_order(ref, "ORD-1", timeout=20), OrderMissing | OrderUnavailable)


def test_the_table_of_order_systems_knows_its_names() -> None:
    with pytest.raises(ValueError, match="there is sandbox"):
        build("shop", base_url="http://x", connect_timeout=1)
