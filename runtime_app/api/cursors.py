"""Opaque places in a list or a stream: what is in one cannot be read, changed or used elsewhere."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db.models import Model, Q, QuerySet

from runtime_app.errors import FieldErrors

Row = TypeVar("Row", bound=Model)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TAG = 16


def seal(place: bytes, *, purpose: str) -> str:
    """The place as text that only `unseal` with the same purpose opens.

    Hidden and not only signed: the transaction ids in a stream's cursor would tell how much other tenants do. The tag
    authenticates the place and is at the same time the nonce of the keystream (the SIV construction).
    """
    tag = _mac("tag", purpose, place)[:_TAG]
    return _text(tag + _crypt(place, purpose, tag))


def unseal(text: str, *, purpose: str, field: str) -> bytes:
    """The place, or FieldErrors naming `field` for anything that `seal` did not write for this purpose."""
    wrong = FieldErrors({field: "This is not a place in this list; start without it."})
    if not text.isascii() or len(text) > 300:
        raise wrong
    try:
        sealed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise wrong from None
    tag, place = sealed[:_TAG], _crypt(sealed[_TAG:], purpose, sealed[:_TAG])
    if not hmac.compare_digest(tag, _mac("tag", purpose, place)[:_TAG]) or _text(sealed) != text:
        raise wrong
    return place


def _text(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _mac(use: str, purpose: str, message: bytes) -> bytes:
    key = hashlib.sha256(f"countersign.cursors\x1f{use}\x1f{purpose}\x1f{settings.SECRET_KEY}".encode()).digest()
    return hmac.new(key, message, hashlib.sha256).digest()


def _crypt(message: bytes, purpose: str, tag: bytes) -> bytes:
    stream = hashlib.shake_256(_mac("stream", purpose, tag)).digest(len(message))
    return bytes(a ^ b for a, b in zip(message, stream, strict=True))


def write(at: datetime, id: UUID, *, purpose: str) -> str:
    """The place of a row in a list by (created_at, id)."""
    return seal(((at - _EPOCH) // _MICROSECOND).to_bytes(8, "big") + id.bytes, purpose=purpose)


def older_than(rows: QuerySet[Row], cursor: str, *, purpose: str) -> QuerySet[Row]:
    """The rows after the cursor's, newest first; a row met before is not met again, whatever happened meanwhile."""
    place = unseal(cursor, purpose=purpose, field="cursor")
    at = _EPOCH + int.from_bytes(place[:8], "big") * _MICROSECOND
    id: Any = UUID(bytes=place[8:])
    # The first condition repeats what the second implies, so that PostgreSQL starts inside the index.
    return rows.filter(created_at__lte=at).filter(Q(created_at__lt=at) | Q(id__lt=id))
