"""What an answer proves, without a network: hostile shapes, secrets, and what PostgreSQL could not store."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.stripe_events import NoSuchEvent
from runtime_app.adapters.payments.stripe_evidence import Answer, judge_cancel, judge_create, read_answer
from runtime_app.adapters.payments.stripe_search import find_refunds
from runtime_app.adapters.payments.types import (
    Declined,
    FindResult,
    Inconclusive,
    Mismatch,
    OutcomeUnknown,
    PaymentSnapshot,
    ProviderAccount,
    Succeeded,
    Throttled,
)
from runtime_app.money import Money
from tests.adapters.stripe_answers import answered

OPERATION = UUID("12345678-1234-5678-1234-567812345678")
REQUEST = StripePayments(connect_timeout=1, read_timeout=1).freeze(
    ProviderAccount("a", "stripe", "sk_test_x"), operation_id=OPERATION, payment_ref="pi_1",
    amount=Money(500, "USD"), reason=None,
)
GOOD: dict[str, Any] = {
    "id": "re_1", "object": "refund", "amount": 500, "currency": "usd", "payment_intent": "pi_1",
    "created": 1_800_000_000, "status": "succeeded", "metadata": {"operation_id": str(OPERATION)},
}


def judged(body: Any, status: int = 200, *, resend: bool = False, **headers: str) -> Any:
    answer = read_answer(answered(body, status, **headers), "POST /v1/refunds", "v")
    return judge_create(answer, REQUEST, resend=resend)


def test_the_refund_we_asked_for_is_a_success() -> None:
    assert isinstance(judged(GOOD), Succeeded)


def test_a_refund_of_a_charge_is_known_by_the_charge_that_was_asked_for() -> None:
    """Stripe names the intent beside it, where there is one."""
    request = replace(REQUEST, payment_ref="ch_1")
    for intent in ("pi_1", None):
        answer = read_answer(answered(GOOD | {"charge": "ch_1", "payment_intent": intent}), "POST /v1/refunds", "v")
        assert isinstance(judge_create(answer, request, resend=False), Succeeded)
    other = read_answer(answered(GOOD | {"charge": "ch_2"}), "POST /v1/refunds", "v")
    assert isinstance(judge_create(other, request, resend=False), Mismatch)


@pytest.mark.parametrize("change", [
    {"id": None}, {"id": 5}, {"id": ""}, {"id": "x" * 300}, {"object": "charge"}, {"amount": True}, {"amount": 500.0},
    {"amount": "500"}, {"amount": 0}, {"amount": -500}, {"amount": 10**400}, {"amount": 2**63}, {"amount": None},
    {"currency": None}, {"currency": "zzz"}, {"currency": ["usd"]}, {"payment_intent": {"id": "pi_1"}},
    {"status": "weird"}, {"status": None}, {"status": ["succeeded"]}, {"status": {}},
], ids=str)
def test_a_200_that_is_no_proper_refund_is_unknown(change: dict[str, Any]) -> None:
    """M07 at the provider's door: a wrong type is never read as an amount."""
    assert isinstance(judged(GOOD | change), OutcomeUnknown)


@pytest.mark.parametrize("body", [
    b"", b"null", b"[]", b"\xff\xfe", json.dumps(GOOD).encode()[:-1] + b', "amount": 500}', b'{"a":' * 50_000,
    json.dumps(GOOD).encode()[:-1] + b', "more": Infinity}',
    b'{"amount": ' + b"9" * 5000 + b"}",
], ids=lambda b: repr(b[:20]))
def test_a_200_that_has_no_single_meaning_is_unknown(body: bytes) -> None:
    assert isinstance(judged(body), OutcomeUnknown)


@pytest.mark.parametrize(("change", "differs"), [
    ({"amount": 501}, ("amount",)), ({"currency": "eur"}, ("currency",)), ({"payment_intent": "pi_2"}, ("payment",)),
    ({"metadata": {}}, ("operation",)), ({"metadata": None}, ("operation",)),
    ({"metadata": {"operation_id": 5}}, ("operation",)),
    ({"amount": 1, "payment_intent": "pi_2"}, ("amount", "payment")),
], ids=str)
def test_another_refund_than_ours_is_a_mismatch(change: dict[str, Any], differs: tuple[str, ...]) -> None:
    result = judged(GOOD | change)
    assert isinstance(result, Mismatch) and result.differs == differs


def stored_refusal(code: str, **more: str) -> dict[str, Any]:
    return {"error": {"type": "invalid_request_error", "code": code, "message": "no", **more}}


def test_only_the_keys_own_stored_refusal_declines_a_resend() -> None:
    assert isinstance(judged(stored_refusal("resource_missing"), 404, resend=False), Declined)
    assert isinstance(judged(stored_refusal("resource_missing"), 404, resend=True), OutcomeUnknown)
    replayed = judged(stored_refusal("card_closed"), 400, resend=True, idempotent_replayed="true")
    assert isinstance(replayed, Declined) and replayed.code == "card_closed"


@pytest.mark.parametrize("status", [405, 408, 410, 418, 422, 424])
def test_other_refusals_are_unknown(status: int) -> None:
    assert isinstance(judged(stored_refusal("x"), status), OutcomeUnknown)


@pytest.mark.parametrize(("text", "seconds"), [
    ("3", 3.0), ("0.5", 0.5), ("99999999", 3600.0), ("-1", None), ("soon", None), ("²", None), ("1e9", None),
    ("", None), (".", None),
])
def test_retry_after_is_read_only_when_it_is_a_number_of_seconds(text: str, seconds: float | None) -> None:
    result = judged(stored_refusal("rate_limit"), 429, retry_after=text)
    assert isinstance(result, Throttled) and result.retry_after == seconds


def test_evidence_keeps_no_secret_and_nothing_that_cannot_be_stored() -> None:
    message = "Invalid key sk_live_abcdef123456 for re_9 with \0 and \ud800"
    result = judged({"error": {"type": "t", "code": "c\0", "message": message, "headers": {"x": "y"}}}, 500)
    assert isinstance(result, OutcomeUnknown)
    kept = json.dumps(result.seen.body)
    assert "sk_live" not in kept and "re_9" in kept and "headers" not in kept
    assert "\\u0000" not in kept and "\\ud800" not in kept
    assert result.seen.body_sha256 is not None


def test_a_cancel_that_answers_with_another_refund_is_a_mismatch() -> None:
    answer = read_answer(answered(GOOD | {"id": "re_2"}), "POST", "v")
    assert isinstance(judge_cancel(answer, "re_1"), Mismatch)


def found_in(page: Answer, total: PaymentSnapshot) -> FindResult:
    return find_refunds(lambda after: page, lambda: total, lambda nameless: NoSuchEvent(), operation_ref="x",
                        payment_ref="pi_1", currency="USD")


@pytest.mark.parametrize("data", [
    [GOOD | {"payment_intent": "pi_2"}], [GOOD | {"amount": "5"}], ["re_1"], [GOOD, GOOD], None, {"0": GOOD},
], ids=lambda d: str(d)[:30])
def test_a_list_with_one_strange_entry_proves_nothing(data: Any) -> None:
    page = read_answer(answered({"object": "list", "has_more": False, "data": data}), "GET", "v")
    total = PaymentSnapshot("pi_1", Money(500, "USD"), Money(0, "USD"), page.seen)
    result = found_in(page, total)
    assert isinstance(result, Inconclusive)


def test_pages_that_go_in_a_circle_end() -> None:
    page = read_answer(answered({"object": "list", "has_more": True, "data": [GOOD]}), "GET", "v")
    total = PaymentSnapshot("pi_1", Money(500, "USD"), Money(500, "USD"), page.seen)
    result = found_in(page, total)
    assert isinstance(result, Inconclusive) and "follow" in result.cause
