"""What a bank can answer when asked for a day, and what of it is believed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from runtime_app.adapters.payments import bank_client
from runtime_app.adapters.payments.bank import BankPayments
from runtime_app.adapters.payments.types import BadStatement, Deadline, Inconclusive, Statement
from runtime_app.adapters.wire import Exchange
from tests.adapters.bank import NOWHERE, bank_account
from tests.adapters.bank_camt_file import camt053, entry, statement

PAYMENTS = BankPayments(connect_timeout=1, read_timeout=1)
HELD = {"id": "ACME", "iban": "NL41MOCK0000000001", "currency": "EUR"}
LISTED = {"number": 17, "day": "2099-01-06", "opening": 10000, "closing": 7500, "message_id": 3}
BEFORE = {"number": 4, "day": "2099-01-05", "opening": 1, "closing": 10000, "message_id": 1}
AFTER = {"number": 5, "day": "2099-01-07", "opening": 10000, "closing": 2, "message_id": 2}
GOOD = camt053(statement([entry()]))


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let the bank answer with these accounts, these statements and this file."""
    def answer(accounts: Any = (HELD,), listed: Any = (LISTED,), file: Any = GOOD) -> None:
        def exchange(method: str, url: str, **_: Any) -> Exchange:
            body = accounts if url.endswith("/accounts") else listed if url.endswith("/statements") else file
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            return Exchange(200, {}, content)

        monkeypatch.setattr(bank_client, "exchange", exchange)

    yield answer


def read() -> Any:
    return PAYMENTS.read_statement(bank_account(NOWHERE), day=date(2099, 1, 6), deadline=Deadline.after(5))


def test_a_day_is_read(says: Any) -> None:
    says()
    assert isinstance(read(), Statement)


@pytest.mark.parametrize("accounts", [[], [HELD, HELD], [{**HELD, "id": 5}], [{**HELD, "id": "a\nb"}], b"<html/>", {}])
def test_an_account_that_is_not_there_once_tells_nothing(says: Any, accounts: Any) -> None:
    says(accounts=accounts)
    assert isinstance(read(), Inconclusive)


@pytest.mark.parametrize("listed", [
    b"<html/>", {}, [], [LISTED, LISTED], [LISTED | {"message_id": None}], [LISTED | {"message_id": "../x"}], [1],
    [BEFORE], [AFTER], [BEFORE, AFTER | {"number": 6}], [BEFORE, AFTER | {"opening": 9999}],
    [BEFORE, AFTER | {"number": "5"}], [BEFORE | {"closing": "1"}, AFTER | {"opening": "1"}],
    [BEFORE | {"closing": 10**20}, AFTER | {"opening": 10**20}], [BEFORE | {"day": None}, AFTER],
], ids=range(15))
def test_a_list_that_does_not_prove_a_day_tells_nothing(says: Any, listed: Any) -> None:
    """F47: a day is empty only between two statements that follow each other in number and balance."""
    says(listed=listed)
    assert isinstance(read(), Inconclusive)


def test_two_statements_that_follow_each_other_prove_the_day_between_them_empty(says: Any) -> None:
    says(listed=[AFTER, BEFORE])
    told = read()
    assert isinstance(told, Statement) and told.lines == () and told.opening == told.closing


def test_a_statement_of_another_day_is_refused(says: Any) -> None:
    says(file=GOOD.replace(b"2099-01-06", b"2099-01-05"))
    told = read()
    assert isinstance(told, BadStatement) and "2099-01-05" in told.why


def test_a_file_that_cannot_be_read_is_refused(says: Any) -> None:
    says(file=b"<html/>")
    assert isinstance(read(), BadStatement)
