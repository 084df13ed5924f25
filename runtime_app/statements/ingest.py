"""Taking a statement: read it, refuse it as a whole or store it as a whole, then compare it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from uuid import UUID

from django.db import transaction

from runtime_app import access, accounts, rows
from runtime_app.adapters.payments import types
from runtime_app.adapters.payments.types import BadStatement, PaymentProvider
from runtime_app.errors import NotFound
from runtime_app.ledger.calls import store_evidence
from runtime_app.models import Account, Statement, StatementDay, User
from runtime_app.points import point
from runtime_app.statements import calendar, compare, completeness, reach, storing

SIZE_MOST = 20 * 1024 * 1024
_REF_MOST, _SEQUENCE_MOST, _SHA_MOST = 200, 60, 64


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of it. `refused` is a sentence, and then nothing was stored but that. `fresh` False: it was taken
    before, and nothing was added. `classes` counts the day's lines by class."""

    day: StatementDay | None = None
    statement: Statement | None = None
    refused: str = ""
    fresh: bool = False
    lines_told: int = 0
    lines_new: int = 0
    trouble: str = ""
    classes: Mapping[str, int] = field(default_factory=dict)


def upload(person: User, account_id: UUID | str, raw: bytes, *, day: date | None = None) -> Taken:
    """A file that a person brought. Raises NotFound and Forbidden; whatever is wrong with the file is in the answer."""
    account = access.one(
        person, Account.objects.all(), account_id, see="see_reconciliation", do="work_reconciliation"
    )
    return take(account, raw, actor=access.actor(person), day=day)


def take(
    account: Account, told: bytes | types.Statement | BadStatement, *, actor: str, day: date | None = None
) -> Taken:
    """Take a file's bytes, or what the provider told. `day` is the day it must be of, when that is known."""
    if reach.form_of(account.provider) == "none":
        return Taken(refused="The provider of this account has no statements that can be read.")
    provider = reach.provider(account.provider)
    read = _read(account, provider, told) if isinstance(told, bytes) else told
    if isinstance(read, types.Statement):
        read = _checked(account, read, day)
    if isinstance(read, BadStatement):
        return _refused(account, read, provider, raw=told if isinstance(told, bytes) else None, day=day)
    stored = storing.store(account, read, actor=actor, adapter_version=provider.adapter_version)
    compare.run(stored.day, actor=actor)
    stored.day.refresh_from_db()
    return Taken(
        day=stored.day, statement=stored.statement, fresh=stored.fresh, lines_told=stored.statement.lines_told,
        lines_new=stored.statement.lines_new if stored.fresh else 0,
        trouble=stored.statement.trouble or stored.day.trouble,
        classes=compare.classes(stored.day),
    )


def _read(account: Account, provider: PaymentProvider, raw: bytes) -> types.Statement | BadStatement:
    if reach.form_of(account.provider) == "list":
        return BadStatement("The statements of this account are read from the provider; there is no file to bring.")
    if len(raw) > SIZE_MOST:
        return BadStatement(f"The file is larger than {SIZE_MOST // 1024 // 1024} MB.")
    return provider.parse_statement(accounts.opened(account), raw)


def _checked(account: Account, told: types.Statement, day: date | None) -> types.Statement | BadStatement:
    """Whether it can be stored at all, and is of a day that can be known."""
    today = calendar.today(account, calendar.now())
    if day is not None and told.day != day:
        return BadStatement(f"This is the statement of {told.day}, not of {day}.")
    if told.day > today or (told.day == today and told.closing is None):
        return BadStatement(f"The day {told.day} is not over yet.")
    if not _storable(told.sequence, _SEQUENCE_MOST) or not _storable(told.sha256, _SHA_MOST):
        return BadStatement("Its number cannot be stored.")
    for line in told.lines:
        texts = (line.ref, line.provider_ref or "", line.payment_ref or "")
        if not line.ref or not all(_storable(text, _REF_MOST) for text in texts) or line.occurred_at.tzinfo is None:
            return BadStatement(f"Line {line.ref[:60]!r} has a reference or a time that cannot be stored.")
    return replace(told, lines=tuple(replace(line, our_ref=_ours(line.our_ref)) for line in told.lines))


def _ours(our_ref: str | None) -> str | None:
    """Our own references are short; what is not storable is not one of them."""
    return our_ref if our_ref and _storable(our_ref, _REF_MOST) else None


def _storable(text: str, most: int) -> bool:
    return len(text) <= most and (text.isprintable() or not text)


def _refused(
    account: Account, bad: BadStatement, provider: PaymentProvider, *, raw: bytes | None, day: date | None
) -> Taken:
    """The bytes are evidence, by their digest; the day says what is wrong unless it has a whole statement already."""
    with transaction.atomic(durable=True):
        storing.lock_account(account.id)
        known = day is not None and calendar.is_over(account, day)
        row = storing.day_row(account, day, calendar.now()) if day is not None and known else None
        if row is not None and row.state == "open" and completeness.judge(row):
            row.trouble = bad.why[:completeness.MOST]
            StatementDay.objects.filter(id=row.id).update(trouble=row.trouble)
        if raw is not None:
            _keep_file(account, raw, bad, provider.adapter_version)
        point("statements.refused.commit")
    point("statements.refused.committed")
    return Taken(day=row, refused=bad.why, trouble=row.trouble if row is not None else "")


def _keep_file(account: Account, raw: bytes, bad: BadStatement, adapter_version: str) -> None:
    digest = hashlib.sha256(raw).hexdigest()
    known = rows.run(
        "SELECT 1 FROM runtime_app_evidence WHERE operation_id IS NULL AND tenant_id = %s AND kind = 'statement_file'"
        " AND body_sha256 = %s LIMIT 1",
        [account.tenant_id, digest],
    )
    if known:
        return
    body = {"account": account.ref, "bytes": len(raw), "why": bad.why[:500]}
    store_evidence(
        tenant_id=account.tenant_id, now=calendar.now(), kind="statement_file", finding="refused",
        seen=storing.file_seen(digest, body, adapter_version, complete=False),
    )


def account_of(tenant_slug: str, ref: str) -> Account:
    """The account of this tenant and reference; NotFound when there is none."""
    found = Account.objects.filter(tenant__slug=tenant_slug, ref=ref).select_related("tenant").first()
    if found is None:
        raise NotFound(f"There is no account {ref!r} of a tenant {tenant_slug!r}.")
    return found
