"""The round that nobody asks for: days are made when they are over, read, read again, and compared."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from runtime_app import clock, jobs, statements
from runtime_app.models import Account, StatementDay, StatementLine
from runtime_app.statements import calendar, compare
from tests.statements.books import ACTOR, Books


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


def test_the_clock_makes_the_day_and_a_worker_that_looks_around_reads_it(books: Books, redis: Redis) -> None:
    """Nobody has to ask: the clock rings in the provider's morning, and not before."""
    books.refund()
    books.next_day()
    books.world.clock(hours=-12)
    clock.tick()
    row = books.row()
    assert (row.state, row.due_at is not None and row.due_at > calendar.now(), row.statements.count()) == (
        "open", not statements.is_anything_due(), 0)
    books.world.clock(hours=24)
    assert clock.tick() == ["default"]
    jobs.look_around("default")
    assert books.classes() == {"MATCHED": 1}


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Tokyo"])
def test_days_are_the_providers_own(books: Books, zone: str) -> None:
    """F48: what is one day there may be two here; nothing of it is a difference."""
    Account.objects.filter(id=books.account.id).update(time_zone=zone)
    books.account.refresh_from_db()
    books.day = calendar.today(books.account, calendar.now())
    books.refund()
    books.next_day()
    books.round()
    assert books.classes() == {"MATCHED": 1} and books.overview().stops == ()
    assert [t.difference_minor for t in books.overview().totals] == [0]
    assert books.close().state == "closed"


def test_an_account_that_was_closed_is_still_read_for_its_days(books: Books) -> None:
    """What was sent there is still accounted for; days after the closing get no rows."""
    books.refund()
    books.next_day()
    statements.open_days()
    Account.objects.filter(id=books.account.id).update(closed_at=calendar.now())
    books.next_day()
    books.round()
    assert books.classes() == {"MATCHED": 1}
    assert StatementDay.objects.filter(account=books.account).count() == 1


def test_a_day_that_cannot_be_worked_on_does_not_stop_the_others(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    books.refund()
    books.next_day()
    statements.open_days()
    real = compare.run

    def raises(day: StatementDay, **known: Any) -> Any:
        if day.account.tenant == books.world.birch:
            raise RuntimeError("a day that nobody thought of")
        return real(day, **known)

    with monkeypatch.context() as patch:
        patch.setattr(compare, "run", raises)
        assert statements.work(books.world.ports(), actor=ACTOR, limit=10) == 2
    assert books.classes() == {"MATCHED": 1}
