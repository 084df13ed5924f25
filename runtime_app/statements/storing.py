"""One statement into the database: all of it in one transaction, and the same one again adds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from runtime_app import rows
from runtime_app.adapters.payments import types
from runtime_app.adapters.payments.types import Observation
from runtime_app.ledger.calls import store_evidence
from runtime_app.models import Account, Statement, StatementDay, StatementLine
from runtime_app.points import point
from runtime_app.statements import calendar, completeness

DUPLICATE, BOOKED = "DUPLICATE_LINE", "Booked as"  # how the notes begin that a line got when it came
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Stored:
    day: StatementDay
    statement: Statement
    fresh: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """A line that was stored before."""

    id: UUID
    day_id: UUID
    day: date
    amount_minor: int
    currency: str
    kind: str
    told_again: bool


def lock_account(account_id: UUID) -> None:
    """One hand at a time on an account's statements; until the end of the transaction."""
    rows.run("SELECT 1 FROM runtime_app_account WHERE id = %s FOR NO KEY UPDATE", [account_id])


def store(account: Account, told: types.Statement, *, actor: str, adapter_version: str) -> Stored:
    with transaction.atomic(durable=True):
        lock_account(account.id)
        now = calendar.now()
        day = day_row(account, told.day, now)
        known = _known_lines(account, told)
        troubles = _troubles(day, told, known)
        before = Statement.objects.filter(day=day, sha256=told.sha256).first()
        if before is not None:
            _judge_again(before, day, troubles, now)
        statement = before or _insert(account, day, told, troubles, known, actor, now)
        if before is None:
            store_evidence(
                tenant_id=account.tenant_id, now=now, kind="statement",
                finding="incomplete" if troubles else "complete",
                seen=_seen(account, told, adapter_version, complete=not troubles),
            )
            StatementDay.objects.filter(id=day.id).update(due_at=now)  # compared by whoever gets to it, if we do not
        point("statements.store.commit")
    point("statements.store.committed")
    return Stored(day, statement, fresh=before is None)


def day_row(account: Account, day: date, now: datetime) -> StatementDay:
    """The day's row, made when there is none."""
    row, _ = StatementDay.objects.get_or_create(
        account=account, day=day, defaults={"tenant_id": account.tenant_id, "due_at": now}
    )
    return row


def _known_lines(account: Account, told: types.Statement) -> dict[str, _Known]:
    found = rows.run(
        "SELECT l.ref, l.id, l.day_id, d.day, l.amount_minor, l.currency, l.kind, l.note LIKE %s"
        " FROM runtime_app_statementline l JOIN runtime_app_statementday d ON d.id = l.day_id"
        " WHERE l.account_id = %s AND (l.ref = ANY(%s) OR d.day = %s)",
        [f"{DUPLICATE}%", account.id, sorted({line.ref for line in told.lines}), told.day],
    )
    return {row[0]: _Known(*row[1:]) for row in found}


def _troubles(day: StatementDay, told: types.Statement, known: Mapping[str, _Known]) -> list[str]:
    first = {line.ref: line for line in reversed(told.lines)}
    own = [line for line in first.values() if line.ref not in known or known[line.ref].day_id == day.id]
    return [
        *_contradictions(told, first, known), *completeness.inner_trouble(told, own), *_left_out(day, first, known)
    ]


def _contradictions(
    told: types.Statement, first: Mapping[str, types.StatementLine], known: Mapping[str, _Known]
) -> list[str]:
    """A reference that was told before of something else: neither of the two can be believed."""
    troubles = []
    for line in told.lines:
        before = known.get(line.ref)
        if before is None:
            other = first[line.ref]
            differs, was = (other.amount, other.kind) != (line.amount, line.kind), str(other.amount)
        else:
            was = f"{before.amount_minor} minor units of {before.currency} on {before.day}"
            differs = (before.amount_minor, before.currency, before.kind) != (
                line.amount.minor, line.amount.currency, line.kind)
        if differs:
            told_as = f"Line {line.ref[:60]} is told as {line.amount}"
            troubles.append(f"{told_as} {completeness.CONTRADICTS} {was}.")
    return troubles[:1]


def _left_out(day: StatementDay, first: Mapping[str, object], known: Mapping[str, _Known]) -> list[str]:
    """Lines of the day that this statement does not show. One that moved to another day is told there again."""
    missing = [ref for ref, k in known.items() if k.day_id == day.id and ref not in first and not k.told_again]
    if not missing:
        return []
    return [f"{len(missing)} lines told before are not in it, {min(missing)[:60]} among them."]


def _joined(troubles: list[str]) -> str:
    return " ".join(troubles)[:completeness.MOST]


def _judge_again(statement: Statement, day: StatementDay, troubles: list[str], now: datetime) -> None:
    """What stood against it before may have been explained since, by a statement of another day. While none of a
    day's statements is the whole of it, the one that is told again is the provider's last word."""
    if statement.trouble != _joined(troubles):
        statement.trouble = _joined(troubles)
        Statement.objects.filter(id=statement.id).update(trouble=statement.trouble)
    if day.state == "open" and completeness.whole(day) is None:
        Statement.objects.filter(id=statement.id).update(taken_at=now)


def _insert(
    account: Account, day: StatementDay, told: types.Statement, troubles: list[str], known: Mapping[str, _Known],
    actor: str, now: datetime,
) -> Statement:
    new = {line.ref: line for line in reversed(told.lines) if line.ref not in known}
    statement = Statement.objects.create(
        tenant_id=account.tenant_id, day=day, source=told.source, sha256=told.sha256, sequence=told.sequence,
        opening_minor=told.opening.minor if told.opening else None,
        closing_minor=told.closing.minor if told.closing else None,
        currency=told.opening.currency if told.opening else "", lines_told=len(told.lines), lines_new=len(new),
        trouble=_joined(troubles), taken_at=now, taken_by=actor,
    )
    _insert_lines(account, day, statement, told, new)
    _note_told_again(day, told, known)
    return statement


def _insert_lines(
    account: Account, day: StatementDay, statement: Statement, told: types.Statement,
    new: Mapping[str, types.StatementLine],
) -> None:
    times = Counter(line.ref for line in told.lines)
    listed = list(new.values())
    for begin in range(0, len(listed), _BATCH):  # batches, since a transaction must not idle while rows are made
        StatementLine.objects.bulk_create([
            StatementLine(
                tenant_id=account.tenant_id, account=account, statement=statement, day=day, ref=line.ref,
                kind=line.kind.value, amount_minor=line.amount.minor, currency=line.amount.currency,
                fee_minor=line.fee.minor if line.fee else None, provider_ref=line.provider_ref or "",
                our_ref=(line.our_ref or "")[:200], payment_ref=line.payment_ref or "", occurred_at=line.occurred_at,
                settled_on=line.settled_on, live=line.live, raw_sha256=line.raw_sha256,
                note=_note(line, times[line.ref], statement, told.day),
            )
            for line in listed[begin:begin + _BATCH]
        ])


def _note(line: types.StatementLine, times: int, statement: Statement, day: date) -> str:
    again = f"{DUPLICATE}: told {times} times on {day}. " if times > 1 else ""
    fee = f" Fee {line.fee}." if line.fee else ""
    return f"{again}{f'{BOOKED} {line.booked}.' if line.booked else ''}{fee}".strip()[:300]


def _note_told_again(day: StatementDay, told: types.Statement, known: Mapping[str, _Known]) -> None:
    """Once a line. The same day read again tells its lines again, which is no news."""
    times = Counter(line.ref for line in told.lines)
    again = [known[ref].id for ref, n in times.items()
             if ref in known and not known[ref].told_again and (n > 1 or known[ref].day_id != day.id)]
    rows.run(
        "UPDATE runtime_app_statementline SET note = rtrim(left(%s || note, 300)) WHERE id = ANY(%s)",
        [f"{DUPLICATE}: told again on {told.day}. ", again],
    )


def _seen(account: Account, told: types.Statement, adapter_version: str, *, complete: bool) -> Observation:
    body: dict[str, Any] = {
        "day": told.day.isoformat(), "account": account.ref, "lines": len(told.lines), "sequence": told.sequence,
        "opening": str(told.opening) if told.opening else None,
        "closing": str(told.closing) if told.closing else None,
    }
    if told.seen is not None:
        return replace(told.seen, body=body, body_sha256=told.sha256, complete=complete)
    return file_seen(told.sha256, body, adapter_version, complete=complete)


def file_seen(sha256: str, body: Any, adapter_version: str, *, complete: bool) -> Observation:
    """A file that somebody brought, as evidence: by its digest."""
    return Observation(
        request_line="file", http_status=None, provider_request_id=None, body_sha256=sha256, body=body,
        api_version="", adapter_version=adapter_version, complete=complete,
    )
