"""Taking in what a provider tells: checked over the raw body, stored once, and answered only after that."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from uuid import UUID

from django.conf import settings
from django.db import transaction

from runtime_app import accounts, rows
from runtime_app.adapters import payments
from runtime_app.adapters.payments.types import Notice, NoticeRefused, PaymentProvider, ProviderAccount
from runtime_app.bell import ring_after_commit
from runtime_app.ids import new_id
from runtime_app.ledger.calls import store_evidence
from runtime_app.ledger.cases import OpenCase
from runtime_app.models import Account
from runtime_app.notices.record import EVIDENCE, Told
from runtime_app.notices.words import other_mode
from runtime_app.points import point
from runtime_app.sealing import Unsealable

log = logging.getLogger(__name__)
BODY_MOST = 256 * 1024
_REF_MOST, _KIND_MOST, _SAYS_MOST = 200, 80, 40


@dataclass(frozen=True, slots=True)
class Taken:
    """Stored and committed. `fresh` is False when this event had come before."""

    fresh: bool


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Not signed with a secret of this account, too old, or not readable. Nothing is stored; `why` is for the log."""

    why: str


@dataclass(frozen=True, slots=True)
class NoSuchAccount:
    """There is no account of this id at this provider."""


@dataclass(frozen=True, slots=True)
class NotReady:
    """It cannot be checked now, through no fault of the sender's, who may send it again."""


Receipt = Taken | NotTaken | NoSuchAccount | NotReady


def receive(provider: str, account_id: UUID, *, headers: Mapping[str, str], body: bytes) -> Receipt:
    """Check and store one notice. Raises Django's database errors; neither body nor secrets are ever logged."""
    account = Account.objects.filter(pk=account_id, provider=provider).first()
    if account is None or provider not in payments.PROVIDERS:
        return NoSuchAccount()
    try:
        held = accounts.opened(account)
    except Unsealable:
        log.error("the secrets of account %s cannot be opened; its notices cannot be checked", account.pk)
        return NotReady()
    read = _read(held, headers, body)
    if isinstance(read, NoticeRefused):
        log.warning("notice refused: %s account %s, %d bytes: %s", provider, account.pk, len(body), read.why)
        return NotTaken(read.why)
    told = _told(account, read, body)
    wrong = read.live is not None and read.live != (account.mode == "live")
    return Taken(_store(told, other_mode(read.live is True) if wrong else ""))


@cache
def _provider(name: str) -> PaymentProvider:
    timing = settings.TIMING
    return payments.build(name, connect_timeout=timing.connect_timeout, read_timeout=timing.read_timeout)


def _read(account: ProviderAccount, headers: Mapping[str, str], body: bytes) -> Notice | NoticeRefused:
    if not account.notice_secrets:
        return NoticeRefused("The account has no secret for notices, so that none can be checked.")
    now: datetime = rows.run("SELECT runtime_now()")[0][0]
    read = _provider(account.provider).parse_notice(account, headers=headers, body=body, now=now)
    if isinstance(read, Notice) and not _kept(read.event_id, _REF_MOST):
        return NoticeRefused("The notice has no id that can be kept.")
    return read


def _told(account: Account, read: Notice, body: bytes) -> Told:
    return Told(
        id=new_id(), tenant_id=account.tenant_id, account_id=account.pk, account=account.ref,
        provider=account.provider, event_id=read.event_id, kind=_kept(read.kind[:_KIND_MOST], _KIND_MOST),
        refund_ref=_kept(read.refund_ref, _REF_MOST), operation_ref=_kept(read.operation_ref, _REF_MOST),
        payment_ref=_kept(read.payment_ref, _REF_MOST), says=_kept(read.says[:_SAYS_MOST], _SAYS_MOST),
        occurred_at=read.occurred_at, body_sha256=hashlib.sha256(body).hexdigest(), tries=0, outcome="",
    )


def _kept(text: str | None, most: int) -> str:
    """What can be stored and compared; anything else is no reference of ours."""
    return text if text and len(text) <= most and text.isprintable() else ""


_INSERT = """
INSERT INTO runtime_app_notice AS n (id, tenant_id, account_id, event_id, kind, refund_ref, operation_ref, payment_ref,
    says, occurred_at, body_sha256, received_at, deliveries, tries, outcome, due_at, handled_at)
SELECT %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, now, 1, 0, %s::text,
    CASE WHEN %s::text = '' THEN now END, CASE WHEN %s::text <> '' THEN now END
FROM (SELECT runtime_now() AS now) AS clock
ON CONFLICT (account_id, event_id) DO UPDATE SET deliveries = n.deliveries + 1 RETURNING n.deliveries, n.received_at
"""


def _store(told: Told, ignored: str) -> bool:
    """Whether it is the first of its event. One that is `ignored` is kept with that reason, and a person is told."""
    values = [
        told.id, told.tenant_id, told.account_id, told.event_id, told.kind, told.refund_ref, told.operation_ref,
        told.payment_ref, told.says, told.occurred_at, told.body_sha256, ignored, ignored, ignored,
    ]
    with transaction.atomic(durable=True):
        deliveries, received_at = rows.run(_INSERT, values)[0]
        fresh: bool = deliveries == 1
        if fresh and ignored:
            _open_case(told, ignored, received_at)
        elif fresh:
            ring_after_commit()
        point("notices.store.commit")
    point("notices.stored")
    return fresh


def _open_case(told: Told, why: str, now: datetime) -> None:
    """One case for as long as one of the same payment is open: a wrongly set up endpoint tells the same all day."""
    orders = rows.run(
        "SELECT order_ref FROM runtime_app_balance WHERE tenant_id = %s AND account = %s AND payment_ref = %s",
        [told.tenant_id, told.account, told.payment_ref],
    )
    case = OpenCase(
        "ACCOUNT_OR_MODE", told.account, told.payment_ref, orders[0][0] if orders else "",
        why=f"A signed notice was {why}.", matter=f"{told.account}:notice:{told.payment_ref}",
        details={"event": told.event_id, "kind": told.kind, "refund": told.refund_ref},
    )
    case_id = case.store(tenant_id=told.tenant_id, task_id=None, now=now)
    if case_id is not None:
        seen = told.seen(_provider(told.provider).adapter_version)
        store_evidence(
            tenant_id=told.tenant_id, now=now, kind=EVIDENCE, finding="other_mode", seen=seen, case_id=case_id
        )
