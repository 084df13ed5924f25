"""Stripe's notices (webhooks): signed over the raw body, good for five minutes, and never more than a hint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stripe import SignatureVerificationError, WebhookSignature

from runtime_app.adapters.payments.stripe_objects import moment, operation_of, payment_of, plain, ref
from runtime_app.adapters.payments.types import Notice, NoticeRefused, ProviderAccount
from runtime_app.adapters.strict_json import Unreadable, read_object

BODY_MOST = 256 * 1024
HEADER_MOST = 4096
TOLERANCE = 300  # seconds, to both sides
_SECONDS = re.compile(r"[0-9]{1,11}", re.ASCII)
_TELLS = ("charge.refunded", "charge.refund.updated")


def parse_notice(
    account: ProviderAccount, headers: Mapping[str, str], body: bytes, now: datetime
) -> Notice | NoticeRefused:
    if len(body) > BODY_MOST:
        return NoticeRefused(f"The notice is larger than {BODY_MOST // 1024} KB.")
    header = next((text for name, text in headers.items() if name.lower() == "stripe-signature"), None)
    if not header:
        return NoticeRefused("The notice has no Stripe-Signature header.")
    signed_at = _signed_at(header)
    if signed_at is None or not any(_signed(body, header, secret) for secret in account.notice_secrets):
        return NoticeRefused("The notice is not signed with a secret of this account.")
    if abs(now.timestamp() - signed_at) > TOLERANCE:
        return NoticeRefused(f"The notice was signed more than {TOLERANCE} seconds ago or ahead of now.")
    try:
        event = read_object(body)
    except Unreadable:
        return NoticeRefused("The notice is not a JSON object with one meaning.")
    return _read_event(event)


def _signed_at(header: str) -> int | None:
    """The one time that the header gives; the SDK would take the first of several."""
    times = [part[2:] for part in header.split(",") if part.startswith("t=")] if len(header) <= HEADER_MOST else []
    return int(times[0]) if len(times) == 1 and _SECONDS.fullmatch(times[0]) else None


def _signed(body: bytes, header: str, secret: str) -> bool:
    """By the SDK, but without its clock: the age is judged by the product's."""
    try:
        return bool(WebhookSignature.verify_header(body, header, secret, tolerance=None))
    except (SignatureVerificationError, ValueError, TypeError):  # not UTF-8, or a signature that is not ASCII
        return False


def _read_event(event: dict[str, Any]) -> Notice | NoticeRefused:
    named, kind = ref(event.get("id")), ref(event.get("type"))
    if event.get("object") != "event" or named is None or kind is None:
        return NoticeRefused("The notice is not an event of Stripe's first version, with an id and a type.")
    live, told = event.get("livemode"), event.get("data")
    about = told.get("object") if isinstance(told, dict) else None
    notice = Notice(named, kind, occurred_at=moment(event.get("created")),
                    live=live if isinstance(live, bool) else None)
    if isinstance(about, dict) and (kind.startswith("refund.") or kind in _TELLS):
        return _about(notice, about)
    return notice


def _about(notice: Notice, about: dict[str, Any]) -> Notice:
    """The refund that the notice is about, itself or as the newest of its charge."""
    refund, payment = about, payment_of(about)
    if about.get("object") == "charge":
        payment = ref(about.get("payment_intent")) or ref(about.get("id"))
        refunds = about.get("refunds")
        data = refunds.get("data") if isinstance(refunds, dict) else None
        refund = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    says = refund.get("status")
    return Notice(
        notice.event_id, notice.kind, ref(refund.get("id")), operation_of(refund), payment,
        str(plain(says)) if isinstance(says, str) else "", notice.occurred_at, notice.live,
    )
