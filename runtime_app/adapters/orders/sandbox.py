"""The order system over HTTP, as the sandbox plays it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from runtime_app.adapters.orders.types import (
    OrderMissing,
    OrderPayment,
    OrderRefund,
    OrderSnapshot,
    OrderUnavailable,
)
from runtime_app.adapters.strict_json import Unreadable, read_object
from runtime_app.adapters.wire import Exchange, exchange
from runtime_app.currencies import EXPONENTS
from runtime_app.money import MAX_MINOR
from runtime_app.points import point

TEXT_MOST = 2000
REF_MOST = 200  # what a column of ours holds
LIST_MOST = 10_000


class SandboxOrders:
    """May be called from many threads at once. `timeout` bounds connecting and waiting, each."""

    def __init__(self, base_url: str, *, connect_timeout: float) -> None:
        self._base = base_url.rstrip("/")
        self._connect = connect_timeout

    def read_order(
        self, tenant: str, order_ref: str, *, timeout: float
    ) -> OrderSnapshot | OrderMissing | OrderUnavailable:
        point("orders.read.before")
        seen = self._send("GET", tenant, order_ref, "", None, timeout)
        point("orders.read.after")
        if seen.status is None:
            return OrderUnavailable(seen.cause)
        try:
            answer = read_object(seen.content)
            if seen.status == 404 and isinstance(answer.get("error"), str):
                return OrderMissing()
            if seen.status != 200:
                return OrderUnavailable(f"status {seen.status}")
            return read_snapshot(answer, order_ref)
        except Unreadable as unreadable:
            return OrderUnavailable(f"status {seen.status}, unreadable: {unreadable}"[:200])

    def record_refund(
        self, tenant: str, order_ref: str, *, operation_id: str, payment_ref: str, amount_minor: int, status: str,
        provider_ref: str | None, timeout: float,
    ) -> str | None:
        body = json.dumps({
            "operation_id": operation_id, "payment_ref": payment_ref, "amount_minor": amount_minor, "status": status,
            "provider_ref": provider_ref,
        }).encode()
        point("orders.record.before")
        seen = self._send("POST", tenant, order_ref, "/refunds", body, timeout)
        point("orders.record.after")
        if seen.status == 200:
            return None
        return seen.cause if seen.status is None else f"status {seen.status}"

    def _send(
        self, method: str, tenant: str, order_ref: str, more: str, body: bytes | None, timeout: float
    ) -> Exchange:
        if {tenant, order_ref} & {"", ".", ".."}:
            # An address would be shortened by these, and another thing be asked for.
            return Exchange(cause="a reference that cannot be part of an address", untouched=True)
        try:
            url = f"{self._base}/orders/{quote(tenant, safe='')}/{quote(order_ref, safe='')}{more}"
        except UnicodeError:
            return Exchange(cause="a reference that is not Unicode", untouched=True)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        return exchange(method, url, headers=headers, body=body, connect=min(self._connect, timeout), read=timeout)


def read_snapshot(answer: dict[str, Any], order_ref: str) -> OrderSnapshot:
    """The order in an answer; Unreadable when one field is not what it must be."""
    if answer.get("order_ref") != order_ref:
        raise Unreadable("another order than asked for")
    currency = answer.get("currency")
    if not isinstance(currency, str) or currency not in EXPONENTS:
        raise Unreadable("currency")
    payments = tuple(_payment(one) for one in _list(answer.get("payments"), "payments"))
    if len({payment.payment_ref for payment in payments}) != len(payments):
        raise Unreadable("a payment occurs twice")
    return OrderSnapshot(
        order_ref, _whole(answer.get("version"), "version", 0, 2**53), _instant(answer.get("as_of")), currency,
        payments, _text(answer.get("destination"), "destination"), _text(answer.get("note"), "note"),
    )


def _payment(value: object) -> OrderPayment:
    if not isinstance(value, dict):
        raise Unreadable("a payment")
    return OrderPayment(
        _required(value.get("payment_ref"), "payment_ref"),
        _whole(value.get("captured_minor"), "captured_minor", 0, MAX_MINOR),
        _optional(value.get("account"), "account"),
        tuple(_refund(one) for one in _list(value.get("refunds"), "refunds")),
    )


def _optional(value: object, name: str) -> str | None:
    return None if value is None else _required(value, name, 80)


def _refund(value: object) -> OrderRefund:
    if not isinstance(value, dict):
        raise Unreadable("a refund")
    amount = _whole(value.get("amount_minor"), "amount_minor", 1, MAX_MINOR)
    return OrderRefund(amount, _text(value.get("operation_id"), "operation_id"))


def _list(value: object, name: str) -> list[object]:
    if not isinstance(value, list) or len(value) > LIST_MOST:
        raise Unreadable(name)
    return value


def _whole(value: object, name: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise Unreadable(name)
    return value


def _text(value: object, name: str) -> str | None:
    if value is None:
        return None
    return _required(value, name, TEXT_MOST)


def _required(value: object, name: str, most: int = REF_MOST) -> str:
    """A text that a database can keep: not empty of meaning, no zero byte, no half of a character."""
    if not isinstance(value, str) or len(value) > most or "\0" in value or (most == REF_MOST and not value):
        raise Unreadable(name)
    try:
        value.encode("utf-8")
    except UnicodeError:
        raise Unreadable(name) from None
    return value


def _instant(value: object) -> datetime:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) and len(value) < 40 else None
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or not 1970 < at.year < 9999:
        raise Unreadable("as_of")
    return at.astimezone(UTC)
