"""The round that nobody asks for: days are made when they are over, read, read again, and compared."""

from __future__ import annotations

from runtime_app.models import StatementLine
from tests.statements.books import Books


def test_a_day_of_done_refunds_is_read_matched_and_may_be_closed(books: Books) -> None:
    """M24: every line has its operation, every operation its line."""
    made = [books.refund(2500), books.refund(700)]
    books.next_day()
    books.round()
    assert books.classes() == {"MATCHED": 2}
    assert {line.operation_id for line in StatementLine.objects.all()} == {o.id for o in made}
    seen = books.overview()
    assert (seen.completeness, seen.stops, seen.cases) == ("complete", (), ())
    assert [t.as_data() for t in seen.totals] == [
        {"currency": "USD", "ours_minor": 3200, "theirs_minor": 3200, "back_minor": 0, "difference_minor": 0}]
    assert books.row().due_at is None
    assert books.close().state == "closed"
