"""Refunds at a bank that none of us wrote: mock-bank, as a process, over its own doors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from runtime_app.adapters.payments import build
from runtime_app.adapters.payments.types import (
    Absent,
    Deadline,
    Declined,
    Found,
    Inconclusive,
    NoSuchRefund,
    NotSent,
    OutcomeUnknown,
    Pending,
    ProviderRefund,
    RefundStatus,
)
from runtime_app.money import Money
from tests.adapters.bank import BankAtMockBank, bank_account, bank_at_mock_bank
from tests.adapters.bank_process import CLOSED, NO_BANK, POOR, running_bank
from tests.adapters.bank_relay import Relay
from tests.adapters.providers import Refunding
from tests.sandbox_process import wait_until


@pytest.fixture(scope="module")
def bank_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BankAtMockBank]:
    with bank_at_mock_bank(tmp_path_factory.mktemp("bank")) as running:
        yield running


@pytest.fixture
def bank(bank_of_file: BankAtMockBank) -> BankAtMockBank:
    bank_of_file.bank.reset()
    return replace(bank_of_file, destination=bank_of_file.destination)


def eur(minor: int) -> Money:
    return Money(minor, "EUR")


def refunding(bank: BankAtMockBank, amount: int = 2500) -> Refunding:
    return Refunding(bank, bank.open_payment(), eur(amount))


def only(result: Any) -> ProviderRefund:
    assert isinstance(result, Found), result
    assert len(result.refunds) == 1
    refund: ProviderRefund = result.refunds[0]
    return refund


def retrieve(bank: BankAtMockBank, ref: str) -> Any:
    return bank.payments.retrieve_refund(bank.account, refund_ref=ref, deadline=Deadline.after(20))


def test_a_transfer_is_pending_until_the_bank_has_booked_it(bank: BankAtMockBank) -> None:
    """C06: accepted is not done."""
    refund = refunding(bank)
    sent = refund.send()
    assert isinstance(sent, Pending)
    assert (sent.refund.ref, sent.refund.operation_ref) == (refund.operation_id.hex, str(refund.operation_id))
    assert only(refund.find()).status is RefundStatus.PENDING
    bank.settle(sent.refund.ref, RefundStatus.SUCCEEDED)
    found = only(refund.find())
    assert (found.status, found.ref, found.amount) == (RefundStatus.SUCCEEDED, sent.refund.ref, eur(2500))
    assert (found.payment_ref, found.operation_ref) == (refund.payment_ref, str(refund.operation_id))
    assert found.created_at is not None and found.created_at.tzinfo is not None
    assert only(retrieve(bank, found.ref)) == replace(found, payment_ref="")
    assert bank.moved(refund.payment_ref) == [(2500, str(refund.operation_id))]


@pytest.mark.parametrize(("iban", "code"), [(CLOSED, "AC04"), (NO_BANK, "RC01")])
def test_a_transfer_to_an_account_that_is_none_is_declined(bank: BankAtMockBank, iban: str, code: str) -> None:
    bank.destination = f"{iban} Somebody"
    refund = refunding(bank)
    sent = refund.send()
    assert isinstance(sent, Declined) and sent.refund is not None
    assert (sent.code, sent.refund.status) == (code, RefundStatus.FAILED)
    found = only(refund.find())
    assert (found.status, found.failure_reason) == (RefundStatus.FAILED, code)
    assert bank.moved(refund.payment_ref) == []


def test_a_transfer_without_cover_is_declined(bank: BankAtMockBank) -> None:
    poor = bank_account(bank.relay.url, debtor_iban=POOR)
    frozen = bank.payments.freeze(poor, operation_id=uuid4(), payment_ref="pi_1", amount=eur(1251), reason=None,
                                  destination=bank.destination)
    sent = bank.payments.create_refund(poor, frozen, idempotency_key="k", resend=False, deadline=Deadline.after(20))
    assert isinstance(sent, Declined) and sent.code == "AM04"


def test_a_file_refused_as_a_whole_is_declined_and_absent(bank: BankAtMockBank) -> None:
    bank.bank.behave("reject-file")
    refund = refunding(bank)
    sent = refund.send()
    assert isinstance(sent, Declined) and (sent.code, sent.refund) == ("FF01", None)
    assert isinstance(refund.find(), Absent)


def test_the_same_file_again_is_unknown_and_moves_nothing_more(bank: BankAtMockBank) -> None:
    """M02: DUPL says that the bank has the original, not what became of it."""
    refund = refunding(bank)
    assert isinstance(refund.send(), Pending)
    for resend in (False, True):
        again = refund.send(resend=resend)
        assert isinstance(again, OutcomeUnknown)
        assert (again.stage, again.cause) == ("duplicate", "DUPL")
    assert bank.moved(refund.payment_ref) == [(2500, str(refund.operation_id))]


def test_a_bank_that_sends_no_report_is_believed_its_answer(bank: BankAtMockBank) -> None:
    """The answer to the file says that it was taken; the status report that never comes is not waited for."""
    bank.bank.behave("silent")
    refund = refunding(bank)
    assert isinstance(refund.send(), Pending)
    assert bank.bank.told("GET", "/_mock/messages?type=pain.002") == []
    bank.settle(refund.operation_id.hex, RefundStatus.SUCCEEDED)
    assert only(refund.find()).status is RefundStatus.SUCCEEDED


def test_a_transfer_that_comes_back_days_later_has_failed(bank: BankAtMockBank) -> None:
    """money.md 3.3 row 24: pacs.004 after it was booked."""
    bank.bank.behave("return-later", days=3, reason="MD07")
    refund = refunding(bank)
    refund.send()
    bank.bank.advance(1)
    assert only(refund.find()).status is RefundStatus.SUCCEEDED
    bank.bank.advance(7)
    found = only(refund.find())
    assert (found.status, found.failure_reason) == (RefundStatus.FAILED, "MD07")
    assert bank.bank.told("GET", "/_mock/messages?type=pacs.004") != []
    assert bank.moved(refund.payment_ref) == []


def test_two_payments_under_one_id_are_both_found(bank: BankAtMockBank) -> None:
    """money.md 2: a new MsgId with the same EndToEndId pays twice; row 8 needs to see both."""
    refund = refunding(bank)
    file = refund.request.body
    ours = refund.operation_id.hex.encode()
    bank.bank.hand_in(file)
    bank.bank.hand_in(file.replace(b"<MsgId>" + ours, b"<MsgId>another-message").replace(b">25.00<", b">26.00<"))
    found = refund.find()
    assert isinstance(found, Found)
    first, second = found.refunds
    assert (first.ref, first.amount) == (ours.decode(), eur(2500))
    assert (second.ref, second.amount) == (f"{ours.decode()}#2", eur(2600))
    assert first.operation_ref == second.operation_ref == str(refund.operation_id)
    assert only(retrieve(bank, second.ref)).amount == eur(2600)
    assert only(retrieve(bank, first.ref)).amount == eur(2500)


def test_another_amount_than_ours_is_given_as_found(bank: BankAtMockBank) -> None:
    refund = refunding(bank)
    bank.bank.hand_in(refund.request.body.replace(b">25.00<", b">0.01<"))
    assert only(refund.find()).amount == eur(1)


def test_what_the_bank_never_had_is_absent(bank: BankAtMockBank) -> None:
    found = refunding(bank).find()
    assert isinstance(found, Absent)
    assert (found.seen.http_status, found.seen.consistency, found.lookalikes) == (404, "strong", ())


def test_a_reference_is_read_whoever_made_it(bank: BankAtMockBank) -> None:
    bank.refund_outside("pi_9", 700)
    theirs = bank.bank.payments()[0]["end_to_end_id"]
    found = only(retrieve(bank, theirs))
    assert (found.ref, found.operation_ref, found.amount) == (theirs, None, eur(700))
    assert isinstance(retrieve(bank, f"{theirs}#77"), NoSuchRefund)
    assert isinstance(retrieve(bank, "INV-nobody"), NoSuchRefund)


@pytest.mark.parametrize("ref", ["", ".", "..", "#1"])
def test_a_reference_that_leads_elsewhere_is_not_asked_for(bank: BankAtMockBank, ref: str) -> None:
    told = retrieve(bank, ref)
    assert isinstance(told, Inconclusive) and told.seen.request_line == "(nothing asked)"


@pytest.mark.parametrize("ref", ["a/b", "a?b", "../accounts", "half \ud800 pair", "zero \0", "x" * 5000, "%2e%2e"])
def test_a_strange_reference_finds_nothing_and_breaks_nothing(bank: BankAtMockBank, ref: str) -> None:
    assert isinstance(retrieve(bank, ref), NoSuchRefund | Inconclusive)


def test_nobody_listens_and_nothing_was_sent(bank: BankAtMockBank) -> None:
    bank.goes_wrong("F1", "")
    refund = refunding(bank)
    assert isinstance(refund.send(), NotSent)
    found = refund.find()
    assert isinstance(found, Inconclusive) and not found.seen.complete


def test_nothing_is_sent_after_the_deadline(bank: BankAtMockBank) -> None:
    """Rule 3 of architecture.md."""
    refund = refunding(bank)
    assert isinstance(refund.send(seconds=-0.001), NotSent)
    assert bank.bank.payments() == []


def test_what_a_bank_does_not_have_is_said_and_not_asked_for(bank: BankAtMockBank) -> None:
    soon = Deadline.after(20)
    has = bank.payments.capabilities(bank.account)
    assert (has.key_window, has.reads_payments, has.sweeps, has.notices) == (None, False, False, False)
    assert (has.can_cancel, has.needs_destination, has.statement) == (frozenset(), True, "camt.053")
    cancelled = bank.payments.cancel_refund(bank.account, refund_ref="x", idempotency_key="k", deadline=soon)
    assert isinstance(cancelled, Declined) and (cancelled.code, cancelled.refund) == ("not_cancelable", None)
    listed = bank.payments.list_refunds(bank.account, payment_ref=None, since=None, cursor=None, deadline=soon)
    payment = bank.payments.retrieve_payment(bank.account, payment_ref="pi_1", deadline=soon)
    assert isinstance(listed, Inconclusive) and isinstance(payment, Inconclusive)
    assert bank.bank.told("GET", "/_mock/requests?path=/_mock/payments") == []


def test_asking_lets_the_bank_do_what_is_due(tmp_path_factory: pytest.TempPathFactory) -> None:
    """mock-bank acts when it is looked at, not by itself: without that a transfer would be pending for ever."""
    with running_bank(tmp_path_factory.mktemp("slow"), more=("--status-delay-ms", "1000")) as slow:
        provider = BankAtMockBank(slow, Relay(slow.url))
        refund = refunding(provider)
        assert isinstance(refund.send(), Pending)
        assert slow.told("GET", "/_mock/messages?type=pain.002") == []

        def reported() -> object:
            assert isinstance(refund.find(), Found)
            return slow.told("GET", "/_mock/messages?type=pain.002")

        assert wait_until(reported)
        provider.relay.close()


def test_the_bank_may_ask_who_is_there(tmp_path_factory: pytest.TempPathFactory) -> None:
    """user:password in the account's key; a wrong one is turned away at the door."""
    with running_bank(tmp_path_factory.mktemp("guarded"), auth="tester:s3cret") as guarded:
        for key, taken in (("tester:wrong", False), ("a-token", False), ("", False), ("tester:s3cret", True)):
            account = replace(bank_account(guarded.url), api_key=key)
            payments = build("bank", connect_timeout=5, read_timeout=10)
            frozen = payments.freeze(account, operation_id=uuid4(), payment_ref="pi_1", amount=eur(1), reason=None,
                                     destination="NL30MOCK0000000005")
            sent = payments.create_refund(account, frozen, idempotency_key="k", resend=False,
                                          deadline=Deadline.after(20))
            assert isinstance(sent, Pending if taken else NotSent), sent
            found = payments.find_refunds(account, operation_id=frozen.operation_id, payment_ref="pi_1",
                                          currency="EUR", deadline=Deadline.after(20))
            assert isinstance(found, Found if taken else Inconclusive)
            assert "s3cret" not in repr((sent, found))
