"""The daily round: each day's statement is read from the provider, again until it is whole, and compared."""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from django.db import InterfaceError, OperationalError
from rq.timeouts import JobTimeoutException

from runtime_app import accounts, rows
from runtime_app.adapters.payments.types import Deadline, Inconclusive, PaymentProvider
from runtime_app.models import StatementDay
from runtime_app.statements import calendar, compare, completeness, ingest, unseen
from runtime_app.statements.compare import Compared
from runtime_app.timing import DAY, Timing
from runtime_app.workflows.types import Ports

log = logging.getLogger(__name__)
_READ = 4  # read timeouts that one day may take, over all its pages


def is_anything_due() -> bool:
    return bool(rows.run("SELECT 1 FROM runtime_app_statementday WHERE due_at <= (SELECT runtime_now()) LIMIT 1"))


def work(ports: Ports, *, actor: str, limit: int = 1) -> int:
    """Take up the days that are due; returns how many were taken."""
    taken = _claim(limit, ports.timing)
    for day in StatementDay.objects.filter(id__in=taken).select_related("account").order_by("day", "id"):
        try:
            if day.account.provider in ports.providers:
                _round(day, ports, actor)
        except (JobTimeoutException, OperationalError, InterfaceError):
            raise
        except Exception:  # one that raises does not stop the others; it is due again when its claim ends
            log.exception("the statement day %s of account %s cannot be worked on", day.day, day.account_id)
    return len(taken)


def _claim(limit: int, timing: Timing) -> list[UUID]:
    found = rows.run(
        "UPDATE runtime_app_statementday AS d SET tries = tries + 1,"
        " due_at = runtime_now() + make_interval(secs => %s) WHERE id IN (SELECT id FROM runtime_app_statementday"
        " WHERE due_at <= (SELECT runtime_now()) ORDER BY due_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED) RETURNING id",
        [max(timing.lease, (_READ + 1) * timing.read_timeout), limit],
    )
    return [row[0] for row in found]


def _round(day: StatementDay, ports: Ports, actor: str) -> None:
    if day.state == "open" and _is_wanted(day):
        _read(day, ports, actor)
    compared = compare.run(day, actor=actor, ports=ports)
    day.refresh_from_db()
    _again(day, compared, ports.timing)


def _is_wanted(day: StatementDay) -> bool:
    """Read while it is not whole, or while operations wait for a line that may have been left out."""
    if not calendar.is_over(day.account, day.day):
        return False
    return bool(completeness.judge(day)) or bool(unseen.operations(day.account, day.day))


def _read(day: StatementDay, ports: Ports, actor: str) -> None:
    account = accounts.opened(day.account)
    provider: PaymentProvider = ports.provider(account)
    told = provider.read_statement(account, day=day.day, deadline=Deadline.after(_READ * ports.timing.read_timeout))
    if isinstance(told, Inconclusive):
        if completeness.judge(day) == completeness.NOT_YET:
            why = f"{completeness.NOT_YET} {told.cause[:1].upper()}{told.cause[1:]}."
            StatementDay.objects.filter(id=day.id, state="open").update(trouble=why[:completeness.MOST])
        return
    ingest.take(day.account, told, actor=actor, day=day.day)


def _again(day: StatementDay, compared: Compared, timing: Timing) -> None:
    """When this day is taken up next. One whose statement never comes stays open, and shows that."""
    incomplete = day.state == "open" and bool(completeness.judge(day))
    wait: float | None = None
    if incomplete or compared.waits:
        doubled = timing.statement_retry * 2 ** min(max(0, day.tries - 1), 30)
        wait = min(timing.statement_every, doubled)
        if calendar.is_overdue(day.account, day.day, timing):
            wait = max(wait, min(DAY, 4 * timing.statement_every))
        if calendar.now() - calendar.window(day.account, day.day)[1] > timedelta(seconds=timing.late_watch):
            wait = None
    rows.run(
        "UPDATE runtime_app_statementday SET due_at = runtime_now() + make_interval(secs => %s) WHERE id = %s",
        [wait, day.id],
    )
