"""Invariants that need more than SQL: the hash chain, derived ids and the provider's promise of keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import connection

from runtime_app import ids, rows
from runtime_app.adapters import payments
from runtime_app.adapters.payments.types import ProviderAccount
from runtime_app.chronicle import canonical, link
from runtime_app.invariants.types import Violation

DERIVED = {
    "chain_verifies": "Every event's hash covers the event before it, and what it said is what was digested.",
    "operation_id_is_derived": "An operation's id follows from its request, so that a restore makes the same one.",
    "resend_in_key_window": "No request is sent again when the provider may have forgotten its key.",
}

_EVENTS = (
    "SELECT e.task_id, e.seq, e.type, e.actor, e.at, e.payload_sha256, e.chain, p.data FROM runtime_app_event e"
    " LEFT JOIN runtime_app_eventpayload p ON p.task_id = e.task_id AND p.seq = e.seq ORDER BY e.task_id, e.seq"
)


def check() -> Iterator[Violation]:
    yield from _chains()
    yield from _derived_ids()
    yield from _resends()


def _chains() -> Iterator[Violation]:
    # A cursor of the server's: there may be millions of events, and they are looked at one after another.
    with connection.chunked_cursor() as cursor:
        cursor.execute(_EVENTS)
        for task, events in groupby(cursor, key=lambda row: row[0]):
            broken = _broken(task, events)
            if broken is not None:
                yield Violation("chain_verifies", str(task), broken)


def _broken(task: UUID, events: Iterator[tuple[Any, ...]]) -> str | None:
    """What is wrong with the first bad link of a task's chain; None when all hold."""
    head, broken = b"", None
    for _, seq, type, actor, at, digest, chain, data in events:
        if broken is not None:
            continue
        head = link(head, task_id=task, seq=seq, type=type, actor=actor, at=at, payload_sha256=bytes(digest))
        if head != bytes(chain):
            broken = f"event {seq} is not the one that was chained"
        elif data is not None and hashlib.sha256(_said(data)).digest() != bytes(digest):
            broken = f"event {seq} said something else"
    return broken


def _said(data: Any) -> bytes:
    return canonical(json.loads(data) if isinstance(data, str) else data).encode()


def _derived_ids() -> Iterator[Violation]:
    for id, slug, workflow, key, effect, ordinal in rows.run(
        "SELECT o.id, n.slug, t.workflow, t.request_key, o.effect, o.ordinal FROM runtime_app_operation o"
        " JOIN runtime_app_task t ON t.id = o.task_id JOIN runtime_app_tenant n ON n.id = t.tenant_id"
    ):
        wanted = ids.operation_id(tenant=slug, workflow=workflow, request_key=key, effect=effect, ordinal=ordinal)
        if id != wanted:
            yield Violation("operation_id_is_derived", str(id), f"the request makes {wanted}")


def _resends() -> Iterator[Violation]:
    for id, call, age, name in rows.run(
        "SELECT o.id, c.id, extract(epoch FROM c.started_at - o.first_submit_at)::float8, a.provider"
        " FROM runtime_app_call c JOIN runtime_app_operation o ON o.id = c.operation_id"
        " JOIN runtime_app_account a ON a.tenant_id = o.tenant_id AND a.ref = o.account WHERE c.kind = 'resend'"
    ):
        if age >= _key_window(name):
            yield Violation("resend_in_key_window", str(id), f"resend {call} {age:.0f} s after the first submission")


@cache
def _key_window(name: str) -> float:
    """Seconds for which this provider promises to remember keys; 0 when it promises nothing."""
    provider = payments.build(name, connect_timeout=1.0, read_timeout=1.0)
    return provider.capabilities(ProviderAccount(id=name, provider=name, api_key="")).key_window or 0.0
