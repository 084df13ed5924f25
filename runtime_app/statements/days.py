"""A day of an account: what it comes to, what stops it from being closed, and the person who closes it."""

from __future__ import annotations

import json
from datetime import date
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from runtime_app import access, rows
from runtime_app.errors import Conflict, NotFound
from runtime_app.models import Account, StatementDay, User
from runtime_app.points import point
from runtime_app.statements import calendar, compare, overviews
from runtime_app.statements.overviews import LineShown, OperationShown, Overview, Total
from runtime_app.statements.storing import lock_account

_MOVED_MOST = 3  # a day that changes under our hands is read again, so often

__all__ = ["LineShown", "OperationShown", "Overview", "Total", "close", "listed", "one", "overview"]


def listed(person: User) -> QuerySet[StatementDay]:
    """The days that the person may see, the newest first."""
    return access.scoped(person, _days(), "see_reconciliation").order_by("-day", "account__ref", "id")


def one(person: User, day_id: UUID | str, *, do: str | None = None) -> StatementDay:
    """Raises NotFound and Forbidden as for every row."""
    return access.one(person, _days(), day_id, see="see_reconciliation", do=do)


def _days() -> QuerySet[StatementDay]:
    return StatementDay.objects.select_related("account", "tenant", "closed_by")


def overview(account: Account, day: date) -> Overview:
    """The day as it stands; NotFound when it has no row. Who may see it is the caller's to ask."""
    row = _days().filter(account=account, day=day).first()
    if row is None:
        raise NotFound
    return overviews.read(row)


def close(person: User, day_id: UUID | str, *, seen_sha256: str) -> StatementDay:
    """Close the day for good, as the person saw it; its open cases are named with it and stay open.

    It is compared once more first. Raises NotFound, Forbidden, or Conflict: it changed since it was seen, something
    stops it (`stops` in the facts), or it is closed already.
    """
    access.forget(person)
    row = one(person, day_id, do="work_reconciliation")
    _refuse_closed(row)
    compare.run(row, actor=access.actor(person))
    for _ in range(_MOVED_MOST):
        row = one(person, day_id, do="work_reconciliation")
        _refuse_closed(row)
        # Read outside of the transaction, which must be short: a mark says that it is still what was read.
        mark = overviews.mark(row)
        seen = overviews.read(row)
        _refuse(seen, seen_sha256)
        if _close(row, seen, mark, person):
            return one(person, day_id)
    raise Conflict("This day was changing at the same moment; nothing was recorded.")


def _close(row: StatementDay, seen: Overview, mark: str, person: User) -> bool:
    """Close it as it was read; False when it has changed meanwhile."""
    closed = []
    with transaction.atomic(durable=True):
        lock_account(row.account_id)
        if overviews.mark(row) == mark:
            closed = rows.run(
                "UPDATE runtime_app_statementday SET state = 'closed', closed_at = runtime_now(), closed_by_id = %s,"
                " totals = %s, due_at = NULL WHERE id = %s AND state = 'open' RETURNING id",
                [person.pk, json.dumps(seen.closing_totals()), row.id],
            )
        point("statements.close.commit")
    point("statements.close.committed")
    return bool(closed)


def _refuse_closed(row: StatementDay) -> None:
    if row.state == "closed":
        who = row.closed_by.username if row.closed_by else ""
        raise Conflict(f"This day was closed by {who} already; nothing was recorded.", closed_by=who,
                       closed_at=row.closed_at)


def _refuse(seen: Overview, seen_sha256: str) -> None:
    if not calendar.is_over(seen.account, seen.day.day):
        raise Conflict("This day is not over yet; nothing was recorded.", stops=["The day is not over yet."])
    if seen.stops:
        raise Conflict(f"This day cannot be closed: {seen.stops[0]}", stops=list(seen.stops))
    if seen.sha256 != seen_sha256:
        raise Conflict("This day has changed since you saw it; nothing was recorded.", sha256=seen.sha256)
