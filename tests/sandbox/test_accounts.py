"""Accounts: whose things a key sees in the lists of the whole account."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.conftest import Tenant, Wire
from tests.sandbox.inbox import Inbox

ACCOUNT: dict[str, Any] = {"tenant": "amber", "api_key": "sk_test_x"}
LISTS = ("/v1/refunds", "/v1/balance_transactions", "/v1/events")


def about(wire: Wire, path: str) -> set[str]:
    """The payments that a list of everything names."""
    query = {"expand[]": "data.source"} if path == "/v1/balance_transactions" else {}
    payments = set()
    for one in wire.listed(path, limit="100", **query):
        shape = one.get("source") or one.get("data", {}).get("object") or one
        payments.add(str(shape["payment_intent"]))
    return payments


@pytest.mark.parametrize("path", LISTS)
def test_a_registered_key_sees_only_its_tenants_things(wire: Wire, tenant: Tenant, path: str) -> None:
    """F49 turned round: accounts are apart."""
    foreign, own = wire.payment(), tenant.payment()
    for payment in (foreign, own):
        wire.refund(payment)
    assert about(tenant.wire, path) == {own}
    assert about(wire, path) >= {foreign, own}, "a key that nobody registered sees everything"


def test_two_tenants_of_one_key_are_both_seen(wire: Wire) -> None:
    for slug in ("twin-a", "twin-b"):
        wire.sandbox.account(slug, "sk_test_twins")
    payments = {wire.payment(tenant=slug) for slug in ("twin-a", "twin-b")}
    for payment in payments:
        wire.refund(payment)
    wire.key = "sk_test_twins"
    assert about(wire, "/v1/refunds") == payments


def test_an_account_is_replaced_and_its_secrets_are_not_shown(wire: Wire, inbox: Inbox) -> None:
    """Provider secrets are never shown again."""
    first = ACCOUNT | {"tenant": "renewed", "notice_url": inbox.url, "notice_secret": "whsec_first_secret"}
    assert wire.sandbox.control("POST", "/accounts", first).status_code == 201
    second = first | {"api_key": "sk_test_second_key", "notice_url": None, "notice_secret": None}
    assert wire.sandbox.control("POST", "/accounts", second).status_code == 200
    listed = wire.sandbox.control("GET", "/accounts")
    assert [a for a in listed.json()["accounts"] if a["tenant"] == "renewed"] == [
        {"tenant": "renewed", "api_key_ends": "_key", "notice_url": None, "signs_notices": False}]
    assert "second_key" not in listed.text and "whsec" not in listed.text


@pytest.mark.parametrize("change", [
    {"tenant": None}, {"tenant": "a b"}, {"api_key": None}, {"api_key": "pk_x"}, {"api_key": 5}, {"api_key": "sk_ x"},
    {"notice_url": "http://h/"}, {"notice_secret": "whsec_x"}, {"colour": "red"},
    *({"notice_secret": "whsec_x", "notice_url": url} for url in (
        "ftp://h/", "//h/", "http://", "http://a:b@h/", "http://h:99999/", "http://h:0/", "http://h/\n", 5, "x" * 600)),
    {"notice_url": "http://h/", "notice_secret": ""}, {"notice_url": "http://h/", "notice_secret": "x y"},
], ids=str)
def test_an_account_that_cannot_be_is_refused(wire: Wire, change: dict[str, Any]) -> None:
    answer = wire.sandbox.control("POST", "/accounts", ACCOUNT | change)
    assert answer.status_code == 422 and answer.json()["error"].endswith(".")
