"""One request to a bank, sent once and before its deadline, and what was seen of it."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import Any

from runtime_app.adapters.payments.bank_pain import VERSION
from runtime_app.adapters.payments.types import Deadline, Observation, ProviderAccount
from runtime_app.adapters.strict_json import Unreadable, read_value
from runtime_app.adapters.wire import Exchange, exchange
from runtime_app.points import point

ADAPTER_VERSION = "bank-1"
DEPTH_MOST = 4
_IBAN = re.compile(r"\b([A-Z]{2}[0-9]{2})[A-Z0-9]{7,26}([A-Z0-9]{4})\b")


@dataclass(frozen=True, slots=True)
class Answer:
    """An exchange, read as JSON. `value` is None when it is not JSON, or none came."""

    seen: Observation
    exchange: Exchange
    value: Any = None

    @property
    def fields(self) -> dict[str, Any]:
        return self.value if isinstance(self.value, dict) else {}

    @property
    def error(self) -> str | None:
        """The sentence with which the bank itself refuses; None for anything else, a proxy's page among it."""
        told = self.fields.get("error")
        return told if isinstance(told, str) else None

    @property
    def why(self) -> str:
        """Why a query that was not answered as asked says nothing."""
        if self.exchange.status is None:
            return self.exchange.cause
        return f"{self.exchange.status} {cut(self.error)}" if self.error else (
            self.seen.cause or f"{self.exchange.status} that is not the bank's")


class BankCalls:
    """May be used from many threads at once."""

    def __init__(self, connect_timeout: float, read_timeout: float) -> None:
        self._connect = connect_timeout
        self._read = read_timeout

    def ask(
        self, account: ProviderAccount, verb: str, path: str, *, deadline: Deadline, file: bytes | None = None,
        kept: tuple[str, ...] = (), json: bool = True,
    ) -> Answer:
        """Send `file`, or read what is at `path`. Of the answer's fields, those in `kept` become evidence."""
        method = "GET" if file is None else "POST"
        point(f"bank.{verb}.before")
        seen = exchange(
            method, account.base_url.rstrip("/") + path, headers=_headers(account, file is not None), body=file,
            connect=self._connect, read=self._read, send_before=deadline.at,
        )
        point(f"bank.{verb}.after")
        return _read(seen, f"{method} {path}", kept, json)


def _headers(account: ProviderAccount, sends: bool) -> dict[str, str]:
    headers = {"Accept": "application/json, application/xml", "User-Agent": "countersign"}
    if sends:
        headers["Content-Type"] = "application/xml"
    if ":" in account.api_key:
        headers["Authorization"] = "Basic " + base64.b64encode(account.api_key.encode("utf-8", "replace")).decode()
    elif account.api_key:
        headers["Authorization"] = "Bearer " + account.api_key.encode("ascii", "replace").decode()
    return headers


def _read(seen: Exchange, request_line: str, kept: tuple[str, ...], json: bool) -> Answer:
    value: Any = None
    cause = seen.cause or None
    if seen.status is not None and json:
        try:
            value = read_value(seen.content)
        except Unreadable as unreadable:
            cause = f"not JSON: {unreadable}"[:200]
    return Answer(observed(request_line, seen, redacted(value, kept), cause), seen, value)


def observed(request_line: str, seen: Exchange | None, body: Any = None, cause: str | None = None) -> Observation:
    """What becomes evidence; `seen` None when nothing was asked at all."""
    content = seen.content if seen is not None and seen.status is not None else None
    return Observation(
        request_line=request_line, http_status=seen.status if seen else None, provider_request_id=None,
        body_sha256=hashlib.sha256(content).hexdigest() if content is not None else None, body=body,
        api_version=VERSION, adapter_version=ADAPTER_VERSION, cause=cause,
    )


def redacted(value: Any, kept: tuple[str, ...], depth: int = 0) -> Any:
    """The few fields that a decision rests on, without anybody's account number; the rest stays only as the digest."""
    if isinstance(value, list | dict) and depth > DEPTH_MOST:
        return "(nested)"
    if isinstance(value, list):
        return [redacted(one, kept, depth + 1) for one in value[:100]]
    if isinstance(value, dict):
        return {name: redacted(value[name], kept, depth + 1) for name in kept if name in value}
    if isinstance(value, str):
        return cut(value)
    if value is None or isinstance(value, bool):
        return value
    return value if isinstance(value, int) and abs(value) < 2**53 else f"({type(value).__name__})"


def cut(text: str | None, most: int = 200) -> str:
    """What an outside system wrote, fit to be kept: storable, short, account numbers masked."""
    clean = (text or "")[:most * 4].replace("\0", "").encode("utf-8", "replace").decode()
    return _IBAN.sub(r"\1…\2", clean)[:most]
