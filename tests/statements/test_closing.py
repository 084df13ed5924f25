"""A person closes a day, as it was seen, once and for good; or is told what stops it."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from runtime_app.errors import Conflict, Forbidden, NotFound
from runtime_app.ledger.cases import close as close_case
from runtime_app.members import add_person
from runtime_app.models import Case, StatementDay, StatementLine, User
from runtime_app.money import Money
from runtime_app.statements import calendar, days
from tests.statements.books import Books


def test_a_closed_day_says_who_when_what_and_never_changes(books: Books) -> None:
    """Who, when, totals, and the digest of what was seen."""
    books.take(books.line(books.refund()))
    seen = books.overview()
    closed = books.close(seen=seen.sha256)
    assert (closed.state, closed.closed_by, closed.due_at) == ("closed", books.world.olga, None)
    assert closed.closed_at is not None and closed.totals["sha256"] == seen.sha256
    assert closed.totals["classes"] == {"MATCHED": 1} and closed.totals["cases"] == []
    assert closed.totals["currencies"][0]["difference_minor"] == 0
    kept = (closed.closed_at, closed.totals, closed.trouble)
    books.next_day(5)
    books.round()
    with pytest.raises(Conflict) as refused:
        books.close()
    assert refused.value.facts["closed_by"] == "olga"
    row = books.row()
    assert (row.closed_at, row.totals, row.trouble) == kept


def test_open_cases_are_named_by_the_closing_and_stay_open(books: Books) -> None:
    books.take(books.line(books.refund(), -2600), books.line(None, -100))
    closed = books.close()
    assert sorted(c["class_name"] for c in closed.totals["cases"]) == ["AMOUNT_OVER", "MISSING_HERE"]
    assert books.cases() == ["AMOUNT_OVER", "MISSING_HERE"]
    total, = closed.totals["currencies"]
    assert (total["ours_minor"], total["theirs_minor"], total["difference_minor"]) == (2500, 2700, 200)


def test_what_is_neither_accounted_for_nor_in_a_case_stops_it(books: Books) -> None:
    """A refund in doubt, one without a line, and a line that waits, each in a sentence that names it."""
    done, doubtful = books.refund(), books.in_doubt(fault="F5")
    books.take(books.line(doubtful, provider_ref="re_1"))
    with pytest.raises(Conflict) as refused:
        books.close()
    stops = " ".join(refused.value.facts["stops"])
    assert str(done.id) in stops and str(doubtful.id) in stops and "outcome is not proved" in stops
    assert books.row().state == "open"


def test_a_refund_in_doubt_with_an_open_case_may_be_listed(books: Books) -> None:
    """An exception that people know of does not keep the day open."""
    operation = books.in_doubt(fault="F29", amount_minor=2600)
    books.next_day()
    books.read()
    books.world.until(lambda: Case.objects.filter(class_name="AMOUNT_MISMATCH").exists())
    closed = books.close()
    assert [c["class_name"] for c in closed.totals["cases"]] == ["AMOUNT_MISMATCH"]
    operation.refresh_from_db()
    assert operation.state == "unknown"


def test_an_incomplete_day_or_one_without_a_statement_does_not_close(books: Books) -> None:
    """STATEMENT_INCOMPLETE."""
    books.take(trouble="Page 2 was not read.")
    with pytest.raises(Conflict, match=r"Page 2 was not read\."):
        books.close()
    row = StatementDay.objects.create(tenant=books.world.amber, account=books.account, day=books.days_after(-1))
    with pytest.raises(Conflict, match=r"There is no statement of this day yet\."):
        days.close(books.world.olga, row.id, seen_sha256=books.overview(row.day).sha256)


def test_a_day_that_changed_since_it_was_seen_is_not_closed(books: Books) -> None:
    """What the person saw is what is closed, or nothing."""
    first = books.line(books.refund())
    books.take(first)
    seen = books.overview().sha256
    books.take(first, books.line(None, -100))
    with pytest.raises(Conflict, match="has changed since you saw it"):
        books.close(seen=seen)
    assert books.row().state == "open" and books.close().state == "closed"


def test_a_case_that_is_closed_meanwhile_changes_what_was_seen(books: Books) -> None:
    books.take(books.line(None, -100))
    seen = books.overview()
    case, = seen.cases
    assert close_case(case.id, tenant_id=case.tenant_id, outcome="explained", actor="x", now=calendar.now())
    with pytest.raises(Conflict, match="has changed"):
        books.close(seen=seen.sha256)
    assert books.close().totals["cases"] == []


def test_what_comes_for_a_closed_day_is_stored_and_opens_its_case_naming_the_day(books: Books) -> None:
    """A later statement of a day that is closed changes nothing of it."""
    line = books.line(books.refund())
    books.take(line)
    closed = books.close()
    late, match = books.line(None, -300), books.line(books.refund())
    taken = books.take(line, late, match)
    case = books.case("MISSING_HERE")
    assert case.details["closed_day"] == str(books.day) and f"after the day {books.day} was closed" in case.why
    assert (taken.lines_new, books.stored(match).class_name) == (2, "MATCHED")
    assert books.overview().after_closing == 2
    row = books.row()
    assert (row.state, row.totals, row.closed_at) == ("closed", closed.totals, closed.closed_at)


def test_a_line_for_a_closed_day_is_asked_about_and_followed_up(books: Books) -> None:
    """A refund outside of us that a statement shows too late is found by the look, as on an open day."""
    operation = books.refund()
    line = books.line(operation)
    books.take(line)
    books.close()
    ghost = books.line(None, -300, payment_ref=operation.payment_ref)
    books.take(line, ghost)
    assert books.cases() == [] and books.row().due_at is not None
    books.look()
    books.round()
    assert books.case("MISSING_HERE").details["closed_day"] == str(books.day)
    assert books.row().due_at is None


def test_only_people_who_work_reconciliation_close_and_strangers_see_nothing(books: Books) -> None:
    """Rights, and tenant isolation: Bea may do anything, in Birch."""
    books.take(books.line(books.refund()))
    row, seen = books.row(), books.overview().sha256
    for who in (books.world.sam, books.world.ava, books.world.tom):
        with pytest.raises(Forbidden):
            days.close(who, row.id, seen_sha256=seen)
    for stranger in (books.world.bea, books.world.rita):
        assert list(days.listed(stranger).filter(account=books.account)) == []
        with pytest.raises(NotFound):
            days.one(stranger, row.id)
        with pytest.raises(NotFound):
            days.close(stranger, row.id, seen_sha256=seen)
    assert list(days.listed(books.world.ava)) == [row]
    assert books.row().state == "open"


def test_of_two_who_close_at_once_one_does(books: Books) -> None:
    """Races: the other is told who was first."""
    books.take(books.line(books.refund()))
    oren = add_person(books.world.amber, "oren", "correct-horse-9", ["operator"], full_name="Oren Lake")
    row, seen = books.row(), books.overview().sha256
    barrier = threading.Barrier(2)
    ended: list[str] = []

    def close(who: User) -> None:
        barrier.wait(10)
        try:
            ended.append(days.close(who, row.id, seen_sha256=seen).state)
        except Conflict as refused:
            ended.append(str(refused.facts["closed_by"]))
        connection.close()

    threads = [threading.Thread(target=close, args=[who]) for who in (books.world.olga, oren)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    first = books.row().closed_by
    assert first is not None and sorted(ended) == sorted(["closed", first.username])


def test_a_line_that_comes_while_somebody_closes_is_not_closed_over(books: Books) -> None:
    """The account is locked: a statement comes before the closing, which then refuses, or after it."""
    line, late = books.line(books.refund()), books.line(None, -300)
    books.take(line)
    row, seen = books.row(), books.overview().sha256
    barrier = threading.Barrier(2)
    ended: list[str] = []

    def close() -> None:
        barrier.wait(10)
        try:
            ended.append(days.close(books.world.olga, row.id, seen_sha256=seen).state)
        except Conflict:
            ended.append("refused")
        connection.close()

    def take() -> None:
        barrier.wait(10)
        books.take(line, late)
        connection.close()

    threads = [threading.Thread(target=act) for act in (close, take)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    books.again()
    case = books.case("MISSING_HERE")
    if ended == ["closed"]:
        assert case.details["closed_day"] == str(books.day) and books.row().totals["lines"] == 1
    else:
        assert ended == ["refused"] and "closed_day" not in case.details and books.row().state == "open"


def test_sums_never_mix_currencies(books: Books) -> None:
    books.take(books.line(books.refund()), books.line(None, amount=Money(-700, "JPY")))
    assert [(t.currency, t.ours_minor, t.theirs_minor) for t in books.overview().totals] == [
        ("JPY", 0, 700), ("USD", 2500, 2500)]
    assert StatementLine.objects.count() == 2
