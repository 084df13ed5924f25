"""The statement faults F42 to F49, made by the real sandbox and met by the daily round."""

from __future__ import annotations

import pytest

from runtime_app import tasks
from runtime_app.models import Case, Statement, StatementLine
from runtime_app.tasks import Request
from tests.statements.books import Books


def test_a_missing_line_is_waited_for_and_read_again(books: Books) -> None:
    """F42: the day is whole as far as the provider says, but our operation is not on it yet; it comes, and no case."""
    operation = books.refund()
    books.world.sandbox.fault("F42", match={"payment_ref": operation.payment_ref})
    books.next_day()
    books.round()
    assert books.overview().completeness == "complete"
    assert [o.class_name for o in books.overview().operations] in (["TIMING"], [])
    books.world.until(lambda: books.round() >= 0 and books.classes() == {"MATCHED": 1})
    assert books.overview().stops == () and books.cases() == []


def test_an_extra_line_is_missing_here(books: Books) -> None:
    """F43."""
    books.refund()
    books.world.sandbox.fault("F43", amount_minor=777)
    books.next_day()
    books.round()
    assert books.classes() == {"MATCHED": 1, "MISSING_HERE": 1}
    case = books.case("MISSING_HERE")
    assert (case.amount_minor, case.currency, case.operation) == (777, "USD", None)
    assert books.overview().stops == () and list(books.overview().cases) == [case]


def test_a_line_told_twice_counts_once(books: Books) -> None:
    """F44, DUPLICATE_LINE: a note, and no second line."""
    operation = books.refund()
    books.world.sandbox.fault("F44", match={"payment_ref": operation.payment_ref})
    books.next_day()
    books.round()
    line = StatementLine.objects.get()
    assert line.class_name == "MATCHED" and line.note.startswith("DUPLICATE_LINE")
    assert books.classes() == {"MATCHED": 1, "DUPLICATE_LINE": 1}
    assert books.overview().totals[0].theirs_minor == 2500 and books.cases() == []


@pytest.mark.parametrize(("code", "more"), [("F45", {}), ("F48", {"seconds": 1})])
def test_a_line_dated_on_the_day_after_belongs_to_the_operation_of_the_day_before(
    books: Books, code: str, more: dict[str, int]
) -> None:
    """F45, F48: shortly over midnight, or a day late, is no difference and no case."""
    operation = books.refund()
    books.world.sandbox.fault(code, match={"payment_ref": operation.payment_ref}, **more)
    books.next_day()
    books.round()
    assert [o.class_name for o in books.overview().operations] == ["TIMING"]
    books.next_day()
    books.round()
    assert books.classes() == {} and books.classes(books.days_after(1)) == {"MATCHED": 1}
    for day in (books.day, books.days_after(1)):
        assert books.overview(day).stops == () and all(t.difference_minor == 0 for t in books.overview(day).totals)
        assert books.close(day).state == "closed"
    assert Case.objects.count() == 0


def test_a_total_that_does_not_add_up_leaves_the_day_incomplete_until_it_does(books: Books) -> None:
    """F46, STATEMENT_INCOMPLETE: the trouble says by how much."""
    books.refund()
    books.world.sandbox.fault("F46", by=2)
    books.next_day()
    assert books.read().trouble == "The provider counts 3 lines and lists 1."
    seen = books.overview()
    assert seen.completeness == "incomplete" and seen.stops[0] == seen.trouble == books.row().trouble
    books.round()
    assert (books.overview().completeness, books.row().trouble, books.overview().stops) == ("complete", "", ())
    assert Statement.objects.filter(day=books.row()).count() == 2 and StatementLine.objects.count() == 1


def test_a_day_that_is_not_there_is_asked_for_until_it_comes(books: Books) -> None:
    """F47: unavailable, then empty, then whole."""
    books.refund()
    books.world.sandbox.fault("F47", how="unavailable", status=409)
    books.next_day()
    books.world.retime(statement_retry=3600.0, statement_every=3600.0)
    books.round()
    assert books.overview().completeness == "none" and "409" in books.row().trouble
    assert books.row().state == "open" and books.row().due_at is not None
    books.world.sandbox.fault("F47")
    books.world.clock(hours=2)
    books.round()
    assert (books.overview().completeness, books.classes()) == ("complete", {})
    assert [o.class_name for o in books.overview().operations] == ["TIMING"]
    books.world.clock(hours=2)
    books.round()
    assert books.classes() == {"MATCHED": 1} and books.overview().stops == () and books.cases() == []


def test_a_day_that_never_comes_stays_open_without_a_case(books: Books) -> None:
    """F45/F47: it is shown as such, nothing is concluded from it, and it is asked for less and less often."""
    books.refund()
    books.world.sandbox.fault("F47", how="unavailable", times=1000)
    books.world.retime(statement_retry=3600.0, statement_every=7200.0)
    books.next_day(6)
    books.round()
    books.world.clock(hours=3)
    books.round()
    assert books.cases() == [] and books.overview().completeness == "none"
    assert books.overview().stops[0].startswith("There is no statement of this day yet.")
    books.next_day(40)
    books.round()
    assert books.row().due_at is None and books.row().state == "open"


def test_another_tenants_line_is_told_without_a_word_of_theirs(books: Books) -> None:
    """F49, ACCOUNT_OR_MODE: Amber's list shows Birch's refund."""
    books.refund()
    order = books.world.order(tenant=books.world.birch)
    task = tasks.create(books.world.bea, books.world.birch, Request("refund", order, amount_minor=900, currency="USD"),
                        request_key="k-birch-000001").task
    books.world.finish(task)
    books.world.sandbox.fault("F49", what="account", on="statement")
    books.next_day()
    books.read()
    case = Case.objects.get()
    assert (case.class_name, case.tenant, case.operation, case.task) == (
        "ACCOUNT_OR_MODE", books.world.amber, None, None)
    assert books.classes() == {"MATCHED": 1, "ACCOUNT_OR_MODE": 1}
    line = StatementLine.objects.get(class_name="ACCOUNT_OR_MODE")
    assert line.operation is None and "birch" not in str(case.details).lower()
