"""What a bank's words prove, the impossible ones too: money.md 2 for a provider without a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from runtime_app.adapters.payments import bank_client
from runtime_app.adapters.payments.bank import BankPayments
from runtime_app.adapters.payments.types import (
    Deadline,
    Declined,
    Found,
    Inconclusive,
    Mismatch,
    NotSent,
    OutcomeUnknown,
    Pending,
    RefundRequest,
    RefundStatus,
    Throttled,
)
from runtime_app.adapters.wire import Exchange
from runtime_app.money import Money
from tests.adapters.bank import NOWHERE, bank_account

OPERATION = UUID("0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab")
OURS = OPERATION.hex
PAYMENTS = BankPayments(connect_timeout=1, read_timeout=1)
ACCOUNT = bank_account(NOWHERE)
REQUEST = RefundRequest(OPERATION, "pi_1", Money(2500, "EUR"), b"<file/>", "0" * 64, "pain.001.001.09")
TAKEN: dict[str, Any] = {"msg_id": OURS, "status": "ACCP", "reason": None, "payments": [
    {"end_to_end_id": OURS, "outcome": "accepted", "reason": None, "amount": 2500, "currency": "EUR"}]}
PAID: dict[str, Any] = {"id": 7, "end_to_end_id": OURS, "amount": 2500, "currency": "EUR", "status": "accepted",
        "booked_at": "2099-01-06T09:00:00Z", "received_at": "2099-01-06T09:00:00Z"}


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let the bank answer everything so: a status and JSON, or raw bytes."""
    def answer(status: int, body: Any) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        monkeypatch.setattr(bank_client, "exchange", lambda *a, **k: Exchange(status, {}, content))

    yield answer


def create(*, resend: bool = False) -> Any:
    return PAYMENTS.create_refund(ACCOUNT, REQUEST, idempotency_key="k", resend=resend, deadline=Deadline.after(5))


def find() -> Any:
    return PAYMENTS.find_refunds(ACCOUNT, operation_id=OPERATION, payment_ref="pi_1", currency="EUR",
                                 deadline=Deadline.after(5))


def taken(**changes: Any) -> dict[str, Any]:
    return TAKEN | {"payments": [TAKEN["payments"][0] | changes]}


@pytest.mark.parametrize("outcome", ["accepted", "pending"])
def test_a_file_that_was_taken_is_pending(says: Any, outcome: str) -> None:
    says(202, taken(outcome=outcome, booked=True))
    assert isinstance(create(), Pending)


def test_a_payment_that_was_rejected_is_declined_by_its_code(says: Any) -> None:
    says(202, taken(outcome="rejected", reason="AC04"))
    sent = create()
    assert isinstance(sent, Declined) and sent.code == "AC04"


@pytest.mark.parametrize(("changes", "differs"), [
    ({"amount": 2501}, ("amount",)), ({"currency": "USD"}, ("currency",)),
    ({"amount": 1, "currency": "USD"}, ("amount", "currency")), ({"amount": 1, "outcome": "rejected", "reason": "AC04"},
                                                                 ("amount",)),
])
def test_an_echo_that_is_not_the_request_is_a_mismatch(says: Any, changes: Any, differs: Any) -> None:
    """F29."""
    says(202, taken(**changes))
    sent = create()
    assert isinstance(sent, Mismatch) and sent.differs == differs


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"null", b"<html/>", b'{"a":1,"a":2}', b"[" * 100_000, {}, TAKEN | {"msg_id": "another"},
    TAKEN | {"payments": []}, TAKEN | {"payments": None}, TAKEN | {"payments": [1]},
    TAKEN | {"payments": TAKEN["payments"] * 2},
    taken(end_to_end_id="another"), taken(outcome="perhaps"), taken(outcome=None), taken(outcome=["accepted"]),
    taken(amount=2500.0), taken(amount="2500"), taken(amount=True), taken(amount=-2500), taken(amount=0),
    taken(amount=10**18), taken(currency="eur"), taken(currency=None), taken(currency="ZZZ"),
    taken(outcome="rejected", reason=None), taken(outcome="rejected", reason="A\0"),
    taken(outcome="rejected", reason=""),
], ids=str)
def test_a_202_that_does_not_say_what_became_of_the_payment_is_unknown(says: Any, body: Any) -> None:
    says(202, body)
    sent = create()
    assert isinstance(sent, OutcomeUnknown) and sent.stage == "answer"


@pytest.mark.parametrize(("status", "body"), [
    (422, b"<html/>"), (422, {}), (422, {"status": "RJCT", "reason": "FF01"}),
    (422, {"msg_id": "another", "status": "RJCT", "reason": "FF01"}),
    (422, {"msg_id": OURS, "status": "ACCP", "reason": "FF01"}), (422, {"msg_id": OURS, "status": "RJCT"}),
    (200, TAKEN), (201, TAKEN), (204, b""), (302, b""), (400, {"error": "bad"}), (404, {"error": "not found"}),
    (409, {"error": "x"}), (413, b"too large"), (500, {"error": "x"}), (502, b"<html/>"), (503, b""),
    (401, b"<html/>"), (403, b""), (429, b""),
], ids=str)
def test_what_is_not_the_banks_own_word_about_our_file_is_unknown(says: Any, status: int, body: Any) -> None:
    says(status, body)
    assert isinstance(create(), OutcomeUnknown)


@pytest.mark.parametrize("msg_id", [OURS, None])
def test_a_file_refused_by_the_bank_is_declined(says: Any, msg_id: str | None) -> None:
    says(422, {"msg_id": msg_id, "status": "RJCT", "reason": "AM10", "payments": []})
    sent = create()
    assert isinstance(sent, Declined) and sent.code == "AM10"


def test_a_duplicate_is_unknown_on_the_first_send_too(says: Any) -> None:
    says(422, {"msg_id": OURS, "status": "RJCT", "reason": "DUPL", "payments": []})
    sent = create()
    assert isinstance(sent, OutcomeUnknown) and sent.stage == "duplicate"


def test_a_refusal_of_a_second_send_proves_nothing_of_the_first(says: Any) -> None:
    """money.md 2, traps."""
    says(422, {"msg_id": OURS, "status": "RJCT", "reason": "AM10"})
    assert isinstance(create(resend=True), OutcomeUnknown)
    says(202, taken(outcome="rejected", reason="AC04"))
    assert isinstance(create(resend=True), OutcomeUnknown)


def test_the_door_and_the_brake_are_believed_in_the_banks_own_shape(says: Any) -> None:
    for status in (401, 403):
        says(status, {"error": "no"})
        assert isinstance(create(), NotSent)
    says(429, {"error": "slowly"})
    assert isinstance(create(), Throttled)


@pytest.mark.parametrize(("changes", "status", "why"), [
    ({}, RefundStatus.SUCCEEDED, None), ({"booked_at": None}, RefundStatus.PENDING, None),
    ({"status": "rejected", "reason": "AM04", "booked_at": None}, RefundStatus.FAILED, "AM04"),
    ({"status": "returned", "return_reason": "MD07"}, RefundStatus.FAILED, "MD07"),
])
def test_a_payment_is_read_by_what_the_bank_did(says: Any, changes: Any, status: RefundStatus, why: str | None) -> None:
    says(200, [PAID | changes])
    found = find()
    assert isinstance(found, Found)
    assert (found.refunds[0].status, found.refunds[0].failure_reason) == (status, why)


@pytest.mark.parametrize("body", [
    b"", b"<html/>", {}, [], PAID, [1], [PAID, 1], [PAID, {}], [PAID | {"end_to_end_id": "another"}],
    [PAID | {"id": None}], [PAID | {"id": True}], [PAID | {"status": "maybe"}], [PAID | {"status": ["accepted"]}],
    [PAID | {"booked_at": 5}], [{k: v for k, v in PAID.items() if k != "booked_at"}], [PAID | {"amount": "2500"}],
    [PAID | {"amount": 1e3}], [PAID | {"currency": "XYZ"}], [PAID | {"status": "rejected", "reason": None}],
    [PAID | {"status": "returned", "return_reason": {"a": 1}}],
], ids=str)
def test_an_answer_that_cannot_be_read_says_nothing(says: Any, body: Any) -> None:
    """One unreadable payment among several makes the whole answer say nothing: it may be the one that counts."""
    says(200, body)
    found = find()
    assert isinstance(found, Inconclusive) and not found.seen.complete


@pytest.mark.parametrize("body", [
    b"<html>404</html>", {}, {"error": "not found"}, {"error": "no payment with EndToEndId 'another'"},
    {"error": ["no payment with EndToEndId", OURS]}, b"",
], ids=str)
def test_a_404_that_is_not_the_banks_word_about_our_payment_is_no_absence(says: Any, body: Any) -> None:
    """A wrong address or a proxy answers 404 too, and absence leads to giving the money free."""
    says(404, body)
    assert isinstance(find(), Inconclusive)


def test_evidence_names_no_account_and_nothing_that_cannot_be_stored(says: Any) -> None:
    says(202, taken(outcome="rejected", reason="AC04", creditor_iban="NL84MOCK0000000003",
                    reason_text="the creditor account NL84MOCK0000000003 is \0 closed \ud800", extra=[[[[[[[1]]]]]]]))
    kept = json.dumps(create().seen.body, ensure_ascii=False)
    assert "NL84…0003" in kept and "NL84MOCK" not in kept
    assert "\\u0000" not in kept and "extra" not in kept
    assert kept.encode()


def test_evidence_of_an_endless_answer_is_short(says: Any) -> None:
    deep: Any = {"payments": "x" * 100_000}
    for _ in range(300):
        deep = {"payments": [deep] * 1}
    says(202, deep)
    assert len(json.dumps(create().seen.body)) < 5000
