"""Stripe v1's shapes: form-encoded requests in, JSON objects and errors out."""

from __future__ import annotations

import json
import sqlite3
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


def server_error() -> Reply:
    return error_reply(500, "api_error", "An unknown error occurred.")


def read_form(text: str) -> list[tuple[str, str]]:
    """Pairs in order; raises ValueError when it is not UTF-8 form data."""
    return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=200)


def segments(path: str) -> list[str]:
    return [unquote(part) for part in path.split("/")[1:]]


def refund_json(row: sqlite3.Row) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "id": row["id"],
        "object": "refund",
        "amount": to_wire(row["amount_minor"], row["currency"]),
        "balance_transaction": "txn_" + row["id"][3:],
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
    if row["pending_reason"] and row["status"] == "pending":
        shape["pending_reason"] = row["pending_reason"]
    return shape


def payment_json(row: sqlite3.Row, refunded_minor: int, *, expand_charge: bool) -> dict[str, Any]:
    currency = row["currency"]
    captured = to_wire(row["captured_minor"], currency)
    refunded = to_wire(refunded_minor, currency)
    charge: Any = charge_id(row["payment_ref"])
    if expand_charge:
        charge = {
            "id": charge, "object": "charge", "amount": captured, "amount_captured": captured,
            "amount_refunded": refunded, "captured": True, "currency": currency.lower(), "disputed": False,
            "payment_intent": row["payment_ref"], "refunded": refunded >= captured, "status": "succeeded",
        }
    return {
        "id": row["payment_ref"], "object": "payment_intent", "amount": captured, "amount_capturable": 0,
        "amount_received": captured, "created": int(row["created"]), "currency": currency.lower(),
        "latest_charge": charge, "livemode": False, "metadata": {}, "status": "succeeded",
    }
