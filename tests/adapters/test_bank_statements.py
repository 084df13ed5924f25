"""The statements that mock-bank itself writes, fetched by day, with and without a hole in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from runtime_app.adapters.payments.types import (
    BadStatement,
    Deadline,
    Inconclusive,
    LineKind,
    Pending,
    ProviderAccount,
    Statement,
)
from runtime_app.money import Money
from tests.adapters.bank import BankAtMockBank, bank_account
from tests.adapters.bank_process import running_bank
from tests.adapters.bank_relay import Relay
from tests.adapters.providers import Refunding

TUESDAY = date(2099, 1, 6)
FRIDAY, SATURDAY, SUNDAY, MONDAY = date(2099, 1, 9), date(2099, 1, 10), date(2099, 1, 11), date(2099, 1, 12)


@pytest.fixture(scope="module")
def bank_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BankAtMockBank]:
    """One that books on the day of the file."""
    with running_bank(tmp_path_factory.mktemp("bank")) as running:
        relay = Relay(running.url)
        yield BankAtMockBank(running, relay)
        relay.close()


@pytest.fixture
def bank(bank_of_file: BankAtMockBank) -> BankAtMockBank:
    bank_of_file.bank.reset()
    return bank_of_file


def read(bank: BankAtMockBank, day: date, account: ProviderAccount | None = None) -> Any:
    return bank.payments.read_statement(account or bank.account, day=day, deadline=Deadline.after(20))


def refunded(bank: BankAtMockBank, *amounts: int) -> list[Refunding]:
    made = [Refunding(bank, bank.open_payment(), Money(amount, "EUR")) for amount in amounts]
    assert all(isinstance(refund.send(), Pending) for refund in made)
    return made


def total(statement: Statement) -> int:
    return sum(line.amount.minor for line in statement.lines)


def test_a_day_names_our_refunds_and_adds_up(bank: BankAtMockBank) -> None:
    made = refunded(bank, 2500, 700)
    bank.refund_outside("pi_9", 100)
    bank.bank.advance(1)
    told = read(bank, TUESDAY)
    assert isinstance(told, Statement)
    assert [(line.our_ref, line.amount.minor) for line in told.lines] == [
        (str(made[0].operation_id), -2500), (str(made[1].operation_id), -700), (None, -100)]
    assert {line.kind for line in told.lines} == {LineKind.REFUND}
    assert {line.occurred_at for line in told.lines} == {datetime(2099, 1, 6, tzinfo=UTC)}
    assert len({line.ref for line in told.lines}) == 3
    assert told.opening is not None and told.closing is not None
    assert told.closing.minor - told.opening.minor == total(told) == -3300
    assert (told.day, told.sequence, told.count_told, told.trouble) == (TUESDAY, "1", 3, "")
    assert told.seen is not None and told.seen.http_status == 200


def test_reading_a_day_twice_and_as_a_file_tells_the_same(bank: BankAtMockBank) -> None:
    refunded(bank, 2500)
    bank.bank.advance(1)
    told = read(bank, TUESDAY)
    assert read(bank, TUESDAY) == told
    assert bank.payments.parse_statement(bank.account, bank.bank.statement_file()) == replace(told, seen=None)


def test_a_statement_with_a_hole_shows_it_in_its_balances(bank: BankAtMockBank) -> None:
    """F42, money.md 2: the missing entry is found by arithmetic only, so both balances must be told."""
    bank.bank.behave("statement-gap")
    made = refunded(bank, 2800, 400)
    bank.bank.advance(1)
    told = read(bank, TUESDAY)
    assert isinstance(told, Statement) and told.opening is not None and told.closing is not None
    assert [line.our_ref for line in told.lines] == [str(made[0].operation_id)]
    assert told.closing.minor - told.opening.minor == -3200 and total(told) == -2800
    assert told.count_told == 1  # the count hides the hole as well


def test_money_that_came_back_is_a_line_of_its_own(bank: BankAtMockBank) -> None:
    bank.bank.behave("return-later", days=1)
    (made,) = refunded(bank, 2500)
    bank.bank.advance(2)
    (line,) = read(bank, date(2099, 1, 7)).lines
    assert (line.kind, line.amount, line.our_ref) == (
        LineKind.REFUND_FAILED, Money(2500, "EUR"), str(made.operation_id))


def test_a_day_without_business_is_a_day_without_entries(bank: BankAtMockBank) -> None:
    refunded(bank, 2500)
    bank.bank.advance(7)
    for day in (SATURDAY, SUNDAY):
        told = read(bank, day)
        assert isinstance(told, Statement)
        assert (told.day, told.lines, told.count_told, told.sequence) == (day, (), 0, "")
        assert told.opening == told.closing == read(bank, FRIDAY).closing == read(bank, MONDAY).opening


def test_a_day_that_has_not_ended_has_no_statement_yet(bank: BankAtMockBank) -> None:
    refunded(bank, 2500)
    told = read(bank, TUESDAY)
    assert isinstance(told, Inconclusive) and "has not issued" in told.cause
    bank.bank.advance(1)
    assert isinstance(read(bank, date(2098, 12, 31)), Inconclusive)
    assert isinstance(read(bank, TUESDAY), Statement)


@pytest.mark.parametrize("settings", [{"debtor_iban": "NL30MOCK0000000005"}, {"debtor_iban": "none"}])
def test_an_account_that_the_bank_does_not_hold_has_none(bank: BankAtMockBank, settings: dict[str, str]) -> None:
    bank.bank.advance(1)
    told = read(bank, TUESDAY, bank_account(bank.relay.url, **settings))
    assert isinstance(told, Inconclusive) and "does not list" in told.cause


def test_a_statement_in_another_currency_than_the_accounts_is_refused(bank: BankAtMockBank) -> None:
    bank.bank.advance(1)
    told = read(bank, TUESDAY, bank_account(bank.relay.url, debtor_currency="USD"))
    assert isinstance(told, BadStatement) and "held in USD" in told.why


def test_a_bank_that_cannot_be_reached_tells_nothing(bank: BankAtMockBank) -> None:
    told = read(bank, TUESDAY, bank_account("http://127.0.0.1:1"))
    assert isinstance(told, Inconclusive) and not told.seen.complete
