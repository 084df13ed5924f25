"""What is lost, held or garbled on the way to the bank and back, and what is known of it then."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from runtime_app.adapters.payments.bank import BankPayments
from runtime_app.adapters.payments.types import (
    Absent,
    Deadline,
    Found,
    NotSent,
    OutcomeUnknown,
    Pending,
    RefundStatus,
    Throttled,
)
from runtime_app.money import Money
from tests.adapters.bank import BankAtMockBank, bank_at_mock_bank
from tests.adapters.providers import Refunding


@pytest.fixture(scope="module")
def bank_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BankAtMockBank]:
    with bank_at_mock_bank(tmp_path_factory.mktemp("bank")) as running:
        yield running


@pytest.fixture
def bank(bank_of_file: BankAtMockBank) -> BankAtMockBank:
    bank_of_file.bank.reset()
    bank_of_file.relay.faults.clear()
    bank_of_file.relay.files.clear()
    return bank_of_file


def sent_with(bank: BankAtMockBank, fault: str) -> tuple[Refunding, Any]:
    refund = Refunding(bank, bank.open_payment(), Money(2500, "EUR"))
    bank.goes_wrong(fault, refund.payment_ref)
    return refund, refund.send()


@pytest.mark.parametrize(("fault", "paid"), [
    ("F2", False), ("F4", True), ("F6", True), ("F7", True), ("F8", False), ("F10", False), ("F11", True),
])
def test_a_lost_or_garbled_answer_is_unknown_and_the_bank_tells_what_is_so(
    bank: BankAtMockBank, fault: str, paid: bool
) -> None:
    """C04, M23; money.md 7. Before and after the bank took the file look alike, and are told apart by asking."""
    refund, sent = sent_with(bank, fault)
    assert isinstance(sent, OutcomeUnknown) and not sent.key_burned
    found = refund.find()
    assert isinstance(found, Found if paid else Absent)
    assert bank.moved(refund.payment_ref) == ([(2500, str(refund.operation_id))] if paid else [])


@pytest.mark.parametrize(("fault", "paid"), [("F3", False), ("F5", True)])
def test_a_bank_that_hangs_is_unknown_once_the_time_is_over(bank: BankAtMockBank, fault: str, paid: bool) -> None:
    quick = replace(bank, payments=BankPayments(connect_timeout=5, read_timeout=0.3))
    refund, sent = sent_with(quick, fault)
    assert isinstance(sent, OutcomeUnknown) and sent.stage == "no_answer"
    assert isinstance(Refunding(bank, refund.payment_ref, refund.amount, refund.operation_id).find(),
                      Found if paid else Absent)


def test_the_end_of_the_lease_ends_the_wait(bank: BankAtMockBank) -> None:
    """The read timeout is 10 s; the deadline is what ends this, or the test would run into its own."""
    refund = Refunding(bank, bank.open_payment(), Money(2500, "EUR"))
    bank.goes_wrong("F3", refund.payment_ref)
    assert isinstance(refund.send(seconds=0.4), OutcomeUnknown)


def test_turned_away_at_the_door_was_not_sent(bank: BankAtMockBank) -> None:
    assert isinstance(sent_with(bank, "F18")[1], NotSent)


def test_slowed_down_was_not_looked_at(bank: BankAtMockBank) -> None:
    refund, sent = sent_with(bank, "F12")
    assert isinstance(sent, Throttled) and sent.retry_after == 1.0
    assert bank.moved(refund.payment_ref) == []


def test_after_a_lost_answer_the_same_file_does_not_pay_again(bank: BankAtMockBank) -> None:
    """The table never sends a file again; if anything did, the message's id would keep it from paying twice."""
    refund, _ = sent_with(bank, "F4")
    again = refund.send(resend=True)
    assert isinstance(again, OutcomeUnknown) and again.stage == "duplicate"
    assert len(bank.moved(refund.payment_ref)) == 1
    bank.settle(refund.operation_id.hex, RefundStatus.SUCCEEDED)
    found = refund.find()
    assert isinstance(found, Found) and found.refunds[0].status is RefundStatus.SUCCEEDED


@pytest.mark.parametrize("reason", [
    None, "late", "späte Ware & <more> ]]>", "zero \0 byte, half \ud800 pair, \x1b bell", "x" * 2000, " \n\t ",
])
def test_the_frozen_bytes_are_what_is_sent(bank: BankAtMockBank, reason: str | None) -> None:
    """I3 of money.md."""
    refund = Refunding(bank, bank.open_payment(), Money(500, "EUR"))
    frozen = bank.payments.freeze(
        bank.account, operation_id=refund.operation_id, payment_ref=refund.payment_ref, amount=refund.amount,
        reason=reason, destination=bank.destination,
    )
    for _ in range(2):
        sent = bank.payments.create_refund(bank.account, frozen, idempotency_key="any", resend=False,
                                           deadline=Deadline.after(20))
        assert isinstance(sent, Pending | OutcomeUnknown)
    assert [hashlib.sha256(file).hexdigest() for file in bank.relay.files] == [frozen.body_sha256] * 2
    assert bank.moved(refund.payment_ref) == [(500, str(refund.operation_id))]
