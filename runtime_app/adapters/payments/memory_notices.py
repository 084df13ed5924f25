"""Notices of the payment provider in memory: JSON with its time in it, signed by HMAC in one header."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from runtime_app.adapters.payments.types import Notice, NoticeRefused, ProviderAccount, ProviderRefund
from runtime_app.adapters.strict_json import Unreadable, read_object

HEADER = "memory-signature"
BODY_MOST = 256 * 1024
TOLERANCE = 300  # seconds, to both sides


def signed_notice(
    refund: ProviderRefund, event_id: str, *, secret: str, at: datetime, kind: str, live: bool
) -> tuple[dict[str, str], bytes]:
    body = json.dumps({
        "id": event_id, "kind": kind, "at": int(at.timestamp()), "live": live, "refund": refund.ref,
        "operation": refund.operation_ref, "payment": refund.payment_ref, "status": refund.status,
    }).encode()
    return {"Memory-Signature": _signature(body, secret)}, body


def _signature(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def parse_notice(
    account: ProviderAccount, headers: Mapping[str, str], body: bytes, now: datetime
) -> Notice | NoticeRefused:
    given = next((text for name, text in headers.items() if name.lower() == HEADER), "")
    if len(body) > BODY_MOST:
        return NoticeRefused("The notice is too large.")
    if not given:
        return NoticeRefused("The notice has no signature.")
    if not any(hmac.compare_digest(_signature(body, s).encode(), given.encode()) for s in account.notice_secrets):
        return NoticeRefused("The notice is not signed with a secret of this account.")
    try:
        told = read_object(body)
    except Unreadable:
        return NoticeRefused("The notice is not readable.")
    at = told.get("at")
    if type(at) is not int or not isinstance(told.get("id"), str) or not isinstance(told.get("kind"), str):
        return NoticeRefused("The notice has no id, kind and time.")
    if abs(now.timestamp() - at) > TOLERANCE:
        return NoticeRefused("The notice is too old, or ahead of now.")
    return Notice(told["id"], told["kind"], told.get("refund"), told.get("operation"), told.get("payment"),
                  str(told.get("status") or ""), datetime.fromtimestamp(at, UTC), told.get("live"))
