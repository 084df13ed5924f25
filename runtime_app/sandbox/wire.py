"""Stripe v1's shapes: form-encoded requests in, JSON objects and errors out."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from runtime_app.sandbox.http11 import Reply
from runtime_app.sandbox.ledger import Refused, charge_id
from runtime_app.sandbox.units import to_wire


def dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def json_reply(value: Any, status: int = 200, **headers: str) -> Reply:
    return Reply(status, dumped(value), {name.replace("_", "-"): text for name, text in headers.items()})


def error_reply(status: int, kind: str, message: str, *, code: str | None = None, param: str | None = None) -> Reply:
    error: dict[str, Any] = {"type": kind, "message": message}
    if code:
        error["code"] = code
        error["doc_url"] = f"https://stripe.com/docs/error-codes/{code.replace('_', '-')}"
    if param:
        error["param"] = param
    return json_reply({"error": error}, status)


def refused_reply(refused: Refused) -> Reply:
    # The over-refund has no code of its own at the provider: only its sentence tells it.
    code = None if refused.code == "amount_too_large" else refused.code
    return error_reply(refused.status, "invalid_request_error", refused.message, code=code, param=refused.param)


def missing(what: str, ref: str, param: str, status: int = 404) -> Reply:
    return error_reply(
        status, "invalid_request_error", f"No such {what}: '{ref}'", code="resource_missing", param=param
    )


class Invalid(Exception):
    """A request that fails validation before anything is executed; carries the reply."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


def invalid(message: str, param: str, code: str | None = None) -> Invalid:
    return Invalid(error_reply(400, "invalid_request_error", message, code=code, param=param))


def server_error() -> Reply:
    return error_reply(500, "api_error", "An unknown error occurred.")


def read_form(text: str) -> list[tuple[str, str]]:
    """Pairs in order; raises ValueError when it is not UTF-8 form data."""
    return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=200)


def segments(path: str) -> list[str]:
    return [unquote(part) for part in path.split("/")[1:]]


def refund_json(row: Mapping[str, Any] | sqlite3.Row) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "id": row["id"],
        "object": "refund",
        "amount": to_wire(row["amount_minor"], row["currency"]),
        "balance_transaction": row["txn"],
        "charge": charge_id(row["payment_ref"]),
        "created": int(row["created"]),
        "currency": row["currency"].lower(),
        "metadata": json.loads(row["metadata"]),
        "payment_intent": row["payment_ref"],
        "reason": row["reason"],
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": row["status"],
        "transfer_reversal": None,
    }
    if row["status"] == "failed":
        shape["failure_reason"] = row["failure_reason"] or "unknown"
        if row["failure_txn"]:
            shape["failure_balance_transaction"] = row["failure_txn"]
    if row["pending_reason"] and row["status"] == "pending":
        shape["pending_reason"] = row["pending_reason"]
    return shape


def charge_json(row: sqlite3.Row, refunded_minor: int, *, disputed: bool, live: bool) -> dict[str, Any]:
    currency = row["currency"]
    captured, refunded = to_wire(row["captured_minor"], currency), to_wire(refunded_minor, currency)
    return {
        "id": charge_id(row["payment_ref"]), "object": "charge", "amount": captured, "amount_captured": captured,
        "amount_refunded": refunded, "captured": True, "created": int(row["created"]), "currency": currency.lower(),
        "disputed": disputed, "livemode": live, "metadata": {}, "payment_intent": row["payment_ref"],
        "refunded": refunded >= captured, "status": "succeeded",
    }


def payment_json(row: sqlite3.Row, charge: Any, *, live: bool) -> dict[str, Any]:
    """`charge` is its id, or the whole charge when that was asked for."""
    captured = to_wire(row["captured_minor"], row["currency"])
    return {
        "id": row["payment_ref"], "object": "payment_intent", "amount": captured, "amount_capturable": 0,
        "amount_received": captured, "created": int(row["created"]), "currency": row["currency"].lower(),
        "latest_charge": charge, "livemode": live, "metadata": {}, "status": "succeeded",
    }


def dispute_json(row: sqlite3.Row, *, live: bool) -> dict[str, Any]:
    return {
        "id": row["id"], "object": "dispute", "amount": to_wire(row["amount_minor"], row["currency"]),
        "balance_transaction": row["txn"], "charge": charge_id(row["payment_ref"]),
        "created": int(row["created"]), "currency": row["currency"].lower(), "livemode": live, "metadata": {},
        "payment_intent": row["payment_ref"], "reason": "fraudulent", "status": "needs_response",
    }
