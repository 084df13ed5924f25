"""Taking a statement: whole or not at all, once, and refused with a sentence that a person can act on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, connection

from runtime_app import accounts, statements
from runtime_app.adapters.payments.types import BadStatement, StatementLine
from runtime_app.errors import Forbidden, NotFound
from runtime_app.models import Account, Case, Evidence, Statement, StatementDay
from runtime_app.models import StatementLine as Stored
from runtime_app.money import Money
from runtime_app.statements import calendar, ingest, storing
from tests.statements.books import ACTOR, Books


def counts() -> tuple[int, ...]:
    return tuple(
        rows.objects.count() for rows in (StatementDay, Statement, Stored, Case, Evidence)
    )


def test_the_same_statement_again_adds_nothing(books: Books) -> None:
    """money.md 3.5: idempotent by day and digest, cases included."""
    told = (books.line(books.refund()), books.line(None, -700))
    first = books.take(*told)
    before = counts()
    again = books.take(*told)
    assert (first.fresh, first.lines_new, again.fresh, again.lines_new) == (True, 2, False, 0)
    assert counts() == before and again.classes == {"MATCHED": 1, "MISSING_HERE": 1}


def test_two_lines_with_one_reference_are_one_line(books: Books) -> None:
    """DUPLICATE_LINE within a statement."""
    line = books.line(books.refund())
    taken = books.take(line, line)
    assert (taken.lines_told, taken.lines_new, taken.trouble) == (2, 1, "")
    assert books.stored(line).note == f"DUPLICATE_LINE: told 2 times on {books.day}."


def test_a_line_of_another_days_statement_is_noted_and_not_stored_again(books: Books) -> None:
    """DUPLICATE_LINE across statements; the day on which it came keeps it."""
    line = books.line(books.refund())
    books.take(line)
    taken = books.take(line, day=books.days_after(1))
    assert (taken.lines_new, taken.trouble, Stored.objects.count()) == (0, "", 1)
    assert books.stored(line).day.day == books.day
    assert books.stored(line).note == f"DUPLICATE_LINE: told again on {books.days_after(1)}."
    books.take(line, day=books.days_after(1), sequence="2")
    assert books.stored(line).note.count("DUPLICATE_LINE") == 1


def test_the_same_day_read_again_tells_its_lines_again_and_that_is_no_news(books: Books) -> None:
    first, second = books.line(books.refund()), books.line(books.refund())
    books.take(first)
    taken = books.take(first, second)
    assert (taken.lines_new, taken.trouble, books.stored(first).note) == (1, "", "")


def test_a_line_that_changes_under_its_reference_leaves_the_day_incomplete(books: Books) -> None:
    """Neither of the two can be believed, and nothing is booked twice."""
    line = books.line(books.refund())
    books.take(line)
    taken = books.take(replace(line, amount=Money(-9900, "USD")))
    assert f"Line {line.ref} is told as -99.00 USD" in taken.trouble
    assert books.stored(line).amount_minor == -2500 and Stored.objects.count() == 1
    assert books.overview().completeness == "incomplete" and books.overview().stops == (books.row().trouble,)
    before = counts()
    assert (books.take(line).fresh, books.overview().completeness) == (False, "complete")  # it has taken it back
    assert counts() == before


def test_a_line_that_is_left_out_later_leaves_that_statement_incomplete(books: Books) -> None:
    """What was told before counts; a statement that shows other lines beside it cannot be the whole day."""
    first, second = books.line(books.refund()), books.line(books.refund())
    books.take(first)
    taken = books.take(second)
    assert taken.trouble.startswith("1 lines told before are not in it")
    assert books.take(first, second).trouble == ""


@pytest.mark.parametrize("bend", [
    lambda line: replace(line, ref="txn\0"), lambda line: replace(line, ref="x" * 201),
    lambda line: replace(line, ref=""), lambda line: replace(line, payment_ref="p" * 201),
    lambda line: replace(line, provider_ref="\ud800"), lambda line: replace(line, occurred_at=datetime(2026, 1, 1)),
])
def test_a_line_that_cannot_be_stored_refuses_the_whole(
    books: Books, bend: Callable[[StatementLine], StatementLine]
) -> None:
    """Hostile input: never a 500, nothing half-ingested."""
    good, bad = books.line(None, -100), books.line(None, -200)
    books.next_day()
    taken = ingest.take(books.account, books.statement(good, bend(bad)), actor=ACTOR)
    assert "cannot be stored" in taken.refused and counts()[1:4] == (0, 0, 0)


def test_an_operation_id_of_any_length_is_no_reference_of_ours(books: Books) -> None:
    for told in ("x" * 500, "not-a-uuid", "{" + str(books.refund().id) + "}", "\u202e"):
        books.take(books.line(None, -100, our_ref=told))
    assert set(Stored.objects.values_list("class_name", flat=True)) == {"MISSING_HERE"}


def test_a_refused_statement_leaves_a_trace_on_its_day_and_nothing_else(books: Books) -> None:
    """The day says what was wrong, until a whole statement comes."""
    books.next_day()
    taken = ingest.take(books.account, BadStatement("The statement has a line that cannot be read."), actor=ACTOR,
                        day=books.day)
    assert taken.refused == books.row().trouble == "The statement has a line that cannot be read."
    assert books.overview().stops == (taken.refused,) and Statement.objects.count() == 0
    books.read()
    assert books.row().trouble == ""
    ingest.take(books.account, BadStatement("Rubbish."), actor=ACTOR, day=books.day)
    assert books.row().trouble == ""  # a wrong file beside a whole statement is no trouble of the day


def test_a_statement_of_another_day_or_of_one_that_is_not_over_is_refused(books: Books) -> None:
    wrong = ingest.take(books.account, books.statement(), actor=ACTOR, day=books.days_after(-1))
    assert wrong.refused == f"This is the statement of {books.day}, not of {books.days_after(-1)}."
    early = ingest.take(books.account, books.statement(), actor=ACTOR)
    assert early.refused == f"The day {books.day} is not over yet."
    assert StatementDay.objects.get().day == books.days_after(-1) and Statement.objects.count() == 0


def test_an_account_whose_provider_is_read_takes_no_file(books: Books) -> None:
    """A file that nobody asked for is kept by its digest, once."""
    for _ in range(2):
        taken = ingest.upload(books.world.olga, books.account.id, b"<xml/>")
        assert "there is no file to bring" in taken.refused
    kept = Evidence.objects.get(kind="statement_file")
    assert kept.finding == "refused"
    assert kept.body == {"account": "stripe", "bytes": 6, "why": taken.refused}


def test_only_who_works_reconciliation_brings_statements(books: Books) -> None:
    """Tenant isolation: Bea does not learn that Amber's account exists."""
    with pytest.raises(Forbidden):
        ingest.upload(books.world.ava, books.account.id, b"")
    for stranger in (books.world.bea, books.world.rita):
        with pytest.raises(NotFound):
            ingest.upload(stranger, books.account.id, b"")
    with pytest.raises(NotFound):
        ingest.upload(books.world.olga, "no-such-id", b"")


def test_a_statement_is_stored_as_a_whole_or_not_at_all(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that fails half-way leaves nothing behind."""
    told = books.statement(books.line(None, -100), books.line(None, -200))
    books.next_day()

    def fails(*args: Any, **kwargs: Any) -> None:
        raise DatabaseError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(storing, "_note_told_again", fails)
        with pytest.raises(DatabaseError):
            ingest.take(books.account, told, actor=ACTOR)
    assert counts()[:3] == (0, 0, 0)
    assert ingest.take(books.account, told, actor=ACTOR).lines_new == 2


def test_many_who_take_the_same_statement_at_once_store_it_once(books: Books) -> None:
    """Races: one day, one statement, each line and each case once."""
    told = books.statement(books.line(books.refund()), *(books.line(None, -n) for n in range(100, 104)))
    books.next_day()
    fresh: list[bool] = []
    barrier = threading.Barrier(4)

    def take() -> None:
        account = Account.objects.get(id=books.account.id)
        barrier.wait(10)
        fresh.append(ingest.take(account, told, actor=ACTOR).fresh)
        connection.close()

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(fresh) == [False, False, False, True]
    assert (Statement.objects.count(), Stored.objects.count(), Case.objects.count()) == (1, 5, 4)
    assert Evidence.objects.filter(kind="statement_line", operation__isnull=False).count() == 1


def test_a_line_in_the_statements_of_two_days_at_once_is_stored_once(books: Books) -> None:
    """Races across days of one account."""
    line = books.line(books.refund())
    days = (books.day, books.days_after(1))
    books.next_day(2)
    barrier = threading.Barrier(2)
    failed: list[Exception] = []

    def take(statement: Any) -> None:
        account = Account.objects.get(id=books.account.id)
        barrier.wait(10)
        try:
            ingest.take(account, statement, actor=ACTOR)
        except Exception as error:
            failed.append(error)
        connection.close()

    threads = [threading.Thread(target=take, args=[books.statement(line, day=day)]) for day in days]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == [] and Stored.objects.count() == 1 and "DUPLICATE_LINE" in books.stored(line).note


def test_what_was_stored_before_the_process_died_is_compared_by_the_round(books: Books) -> None:
    """A crash between storing and comparing loses nothing."""
    line = books.line(None, -100)
    books.next_day()
    storing.store(books.account, books.statement(line), actor=ACTOR, adapter_version="x")
    assert books.stored(line).class_name == "" and books.overview().stops
    books.round()
    assert books.stored(line).class_name == "MISSING_HERE" and books.cases() == ["MISSING_HERE"]


def test_days_are_made_for_accounts_with_statements_since_they_exist(books: Books) -> None:
    """One row a past day, of open accounts only, due in the provider's morning."""
    memory = accounts.keep(books.world.amber, "gone", provider="stripe", base_url=books.world.sandbox.url)
    Account.objects.filter(id=memory.id).update(closed_at=calendar.now())
    auckland = accounts.keep(books.world.amber, "far", provider="stripe", base_url=books.world.sandbox.url,
                             time_zone="Pacific/Auckland")
    assert statements.open_days() == (1 if calendar.today(auckland, calendar.now()) > _first(auckland) else 0)
    books.next_day(3)
    statements.open_days()
    found = StatementDay.objects.filter(account=books.account).order_by("day")
    assert [row.day for row in found] == [books.days_after(n) for n in range(3)]
    assert found[0].due_at == datetime.combine(books.days_after(1), datetime.min.time(), UTC).replace(hour=6)
    far = StatementDay.objects.filter(account=auckland).order_by("day").first()
    assert far is not None and far.due_at is not None
    assert far.due_at.astimezone(calendar.zone_of(auckland)).hour == 6
    assert not StatementDay.objects.filter(account=memory).exists()
    assert statements.open_days() == 0


def _first(account: Account) -> Any:
    return account.created_at.astimezone(calendar.zone_of(account)).date()
