"""A bank's camt.053: fetched from a real mock-bank and brought as a file, whole and with a hole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime_app import accounts, statements
from runtime_app.adapters.payments.bank_camt import parse_camt053
from runtime_app.adapters.payments.types import Statement as Told
from runtime_app.models import Evidence, Statement, StatementDay, StatementLine
from runtime_app.statements import ingest
from tests.adapters.bank_camt_file import balance, camt053, entry, payment, statement
from tests.adapters.bank_process import running_bank
from tests.statements.bank import BankBooks, next_tuesday
from tests.statements.books import ACTOR, Books

HEADERS = '<!DOCTYPE x [<!ENTITY a "aaaa">]>'


@pytest.fixture
def bank(books: Books, tmp_path: Path) -> Iterator[BankBooks]:
    day = next_tuesday(books.world)
    with running_bank(tmp_path, more=("--clock", f"{day}T09:00")) as running:
        yield BankBooks(books, day, running)


@pytest.fixture
def paper(books: Books) -> BankBooks:
    """The same account, of which files are brought and nothing is asked."""
    return BankBooks(books, next_tuesday(books.world))


def file_of(bank: BankBooks, *entries: str, opening: str = "100.00", closing: str = "100.00", number: str = "17",
            day: str = "", **parts: str) -> bytes:
    """A statement made by hand of the day, or of another."""
    day = day or bank.day.isoformat()
    made = camt053(statement(
        entries, number=number, id=f"S-{number}", period="", opening=balance("OPBD", opening, day=day),
        closing=balance("CLBD", closing, day=day), **parts))
    return made.replace(b"2099-01-06", day.encode())


def test_a_transfer_is_proved_by_what_the_bank_has_booked_and_the_day_closes(bank: BankBooks) -> None:
    """RESOLVES_UNKNOWN for a refund that the bank has only accepted, then MATCHED; balances add up."""
    bank.world.retime(pending_after=[3600.0], pending_every=3600.0)
    operation = bank.refund(2500)
    bank.next_day()
    bank.round()
    assert bank.classes() in ({"RESOLVES_UNKNOWN": 1}, {"MATCHED": 1})
    bank.world.finish(bank.task(operation))
    bank.again()
    assert bank.classes() == {"MATCHED": 1} and bank.overview().completeness == "complete"
    assert bank.close().totals["currencies"] == [
        {"currency": "EUR", "ours_minor": 2500, "theirs_minor": 2500, "back_minor": 0, "difference_minor": 0}]


def test_a_statement_with_a_hole_says_by_how_much_and_cannot_close(bank: BankBooks) -> None:
    """F42 at a bank: only the balances show it, and MISSING_AT_PROVIDER is not concluded from it."""
    assert bank.bank is not None
    bank.bank.behave("statement-gap")
    for minor in (2800, 400):
        bank.refund(minor)
    bank.next_day()
    bank.round()
    seen = bank.overview()
    assert seen.completeness == "incomplete" and "-4.00 EUR is not explained by a line" in seen.trouble
    bank.next_day(7)
    bank.round()
    assert bank.cases() == [] and bank.overview().trouble in bank.overview().stops


def test_money_that_the_bank_sent_back_is_on_a_later_day(bank: BankBooks) -> None:
    """RETURNED by pacs.004, row 24, across two statements."""
    assert bank.bank is not None
    bank.bank.behave("return-later", days=2)
    operation = bank.refund(2500)
    bank.next_day()
    bank.world.finish(bank.task(operation))
    assert bank.world.operation(bank.task(operation)).state == "succeeded"
    bank.next_day(2)
    bank.round()
    bank.look()
    bank.again(bank.days_after(2))
    operation.refresh_from_db()
    assert operation.state == "returned" and bank.cases() == ["RETURNED"]
    assert bank.classes(bank.days_after(2)) == {"RETURNED": 1}


def test_a_file_and_the_banks_own_answer_are_one_statement(bank: BankBooks) -> None:
    """Brought by hand and fetched: the same bytes add nothing."""
    bank.refund(2500)
    bank.next_day()
    assert bank.bank is not None
    raw = bank.bank.statement_file()
    first = ingest.upload(bank.world.olga, bank.account.id, raw)
    assert (first.refused, first.fresh, first.lines_new) == ("", True, 1)
    bank.round()
    again = ingest.upload(bank.world.olga, bank.account.id, raw)
    assert not again.fresh and Statement.objects.filter(day=bank.row()).count() == 1
    assert Statement.objects.get(day=bank.row()).taken_by.startswith("person:")


def test_days_without_business_are_whole_and_close(bank: BankBooks) -> None:
    """A weekend has no statement of its own; the days around it follow each other in number and balance."""
    bank.refund(2500)
    bank.next_day(7)
    statements.open_days()
    bank.round()
    saturday = bank.days_after(4)
    assert bank.overview(saturday).completeness == "complete"
    assert bank.close(saturday).state == "closed"


@pytest.mark.parametrize(("raw", "says"), [
    (b"PK\x03\x04 not xml", "not XML"),
    (b"", "empty"),
    (b"x" * (ingest.SIZE_MOST + 1), "larger than 20 MB"),
    (camt053(statement([entry()]), head=HEADERS), "ocument type"),
    (camt053(statement([entry()])).replace(b"NL41MOCK0000000001", b"NL14MOCK0000000002"), "another account"),
    (camt053(statement([entry(currency="USD")])), "USD"),
    (camt053(statement([entry("25.001")])), "25.001"),
    (camt053(statement([entry("NaN")])), "NaN"),
    (camt053(statement([entry()]), statement([entry()])), "2 statements"),
    (camt053(statement([entry()], opening="")), "opening"),
    (camt053(statement([entry()]), version="camt.054.001.08"), "camt.054"),
])
def test_a_file_that_cannot_be_read_is_refused_with_its_sentence_and_kept_by_its_digest(
    paper: BankBooks, raw: bytes, says: str
) -> None:
    """The bad input of the issue: nothing half-ingested, and the evidence says what it was."""
    paper.next_day()
    taken = ingest.take(paper.account, raw, actor=ACTOR, day=paper.day)
    assert says.lower() in taken.refused.lower(), taken.refused
    assert paper.row().trouble == taken.refused[:300]
    assert (Evidence.objects.get(kind="statement_file").body or {})["bytes"] == len(raw)
    assert Statement.objects.count() == StatementLine.objects.count() == 0


def test_a_statement_of_another_day_or_of_the_future_is_refused(paper: BankBooks) -> None:
    raw = file_of(paper)
    assert "not of" in ingest.take(paper.account, raw, actor=ACTOR, day=paper.days_after(-1)).refused
    late = file_of(paper, day=paper.days_after(3).isoformat())
    assert "is not over yet" in ingest.take(paper.account, late, actor=ACTOR).refused
    assert ingest.take(paper.account, raw, actor=ACTOR).refused == ""  # its own day is closed at the bank already


def test_balances_that_do_not_explain_the_lines_leave_the_day_incomplete(paper: BankBooks) -> None:
    """STATEMENT_INCOMPLETE by arithmetic, then a right one of the same day makes it whole."""
    bad = ingest.take(paper.account, file_of(paper, entry("25.00"), closing="80.00"), actor=ACTOR)
    assert bad.trouble == ("It does not add up: opening 100.00 EUR, lines -25.00 EUR, closing 80.00 EUR; 5.00 EUR is"
                           " not explained by a line.")
    good = ingest.take(paper.account, file_of(paper, entry("25.00"), closing="75.00"), actor=ACTOR)
    assert good.trouble == "" and paper.row().trouble == ""
    assert StatementLine.objects.count() == 1


def test_a_count_that_is_not_what_is_listed_leaves_the_day_incomplete(paper: BankBooks) -> None:
    """One entry may hold several payments: entries are counted as entries."""
    pair = "".join(
        payment(f"E{n}", before=f'<Amt Ccy="EUR">{amount}</Amt>') for n, amount in ((1, "10.00"), (2, "15.00")))
    told = "<TxsSummry><TtlNtries><NbOfNtries>{}</NbOfNtries></TtlNtries></TxsSummry>"
    for count, trouble in ((1, ""), (2, "The provider counts 3 lines and lists 2.")):
        raw = file_of(paper, entry("25.00", payments=pair), closing="75.00", more=told.format(count))
        read = parse_camt053(accounts.opened(paper.account), raw)
        assert isinstance(read, Told) and len(read.lines) == 2 and read.count_told == count + 1
        assert ingest.take(paper.account, raw, actor=ACTOR).statement.trouble == trouble  # type: ignore[union-attr]


def test_a_missing_number_and_a_balance_that_jumps_are_seen_from_the_day_after(paper: BankBooks) -> None:
    """No missing sequence number, and opening = the previous day's closing when both exist."""
    first, second = paper.day.isoformat(), paper.days_after(1).isoformat()
    paper.world.clock(days=3)
    ingest.take(paper.account, file_of(paper, number="17", day=first), actor=ACTOR)
    gap = ingest.take(paper.account, file_of(paper, number="20", day=second), actor=ACTOR)
    assert gap.trouble == "A statement is missing before this one: numbers 18 to 19 are not there."
    jump = ingest.take(
        paper.account, file_of(paper, number="18", day=second, opening="90.00", closing="90.00"), actor=ACTOR)
    assert "is not the closing balance of the day before, 100.00 EUR" in jump.trouble
    right = ingest.take(paper.account, file_of(paper, number="18", day=second), actor=ACTOR)
    assert right.trouble == "" and not StatementDay.objects.exclude(trouble="").exists()


def test_numbers_begin_anew_with_the_year(paper: BankBooks) -> None:
    year = paper.day.year
    for day, number, trouble in (
        (f"{year - 1}-12-30", "250", ""), (f"{year}-01-02", "1", ""),
        (f"{year}-01-05", "1", f"Statement number 1 does not follow number 1 of {year}-01-02."),
    ):
        assert ingest.take(paper.account, file_of(paper, number=number, day=day), actor=ACTOR).trouble == trouble
