"""The payment provider: the part of Stripe v1 that refunds need."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from runtime_app.sandbox.faults import Call
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.ledger import Ledger, Plan, Refused
from runtime_app.sandbox.units import from_wire
from runtime_app.sandbox.wire import (
    error_reply,
    json_reply,
    missing,
    payment_json,
    read_form,
    refund_json,
    refused_reply,
    segments,
)

_REASONS = ("duplicate", "fraudulent", "requested_by_customer")
_METADATA = re.compile(r"metadata\[([^\[\]]{1,40})\]")
_WHOLE = re.compile(r"[0-9]{1,12}", re.ASCII)


class Invalid(Exception):
    """A request that fails validation before anything is executed; carries the reply."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


def _invalid(message: str, param: str, code: str | None = None) -> Invalid:
    return Invalid(error_reply(400, "invalid_request_error", message, code=code, param=param))


def read_call(request: Request, ledger: Ledger) -> Call | None:
    """Which call this is and what it is about; None for an address that is not the provider's."""
    if not request.path.startswith("/v1/"):
        return None
    parts = segments(request.path)[1:]
    facts: dict[str, str] = {}
    if key := request.headers.get("idempotency-key"):
        facts["idempotency_key"] = key
    match (request.method, *parts):
        case ("POST", "refunds"):
            form = _pairs(request.body.decode("utf-8", "replace"))
            facts |= {k: form[n] for k, n in _CREATE_FACTS if n in form}
            return Call("create", facts)
        case ("GET", "refunds"):
            facts["payment_ref"] = _pairs(request.query).get("payment_intent", "")
            return Call("list", facts)
        case ("GET", "refunds", refund_id):
            return Call("retrieve", facts | _of_refund(ledger.refund(refund_id)))
        case ("POST", "refunds", refund_id, "cancel"):
            return Call("cancel", facts | _of_refund(ledger.refund(refund_id)))
        case ("GET", "payment_intents", payment_ref):
            return Call("payment", facts | {"payment_ref": payment_ref})
    return Call("other", facts)


_CREATE_FACTS = (("payment_ref", "payment_intent"), ("operation_id", "metadata[operation_id]"))


def _pairs(text: str) -> dict[str, str]:
    try:
        return dict(read_form(text))
    except ValueError:
        return {}


def _of_refund(row: sqlite3.Row | None) -> dict[str, str]:
    if row is None:
        return {}
    facts = {"payment_ref": str(row["payment_ref"])}
    return facts | ({"operation_id": str(row["operation_id"])} if row["operation_id"] else {})


class Provider:
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def plan(self, request: Request) -> Plan:
        """Validate a create; raises Invalid."""
        try:
            pairs = read_form(request.body.decode("utf-8"))
        except ValueError:
            raise _invalid("The body is not form-encoded UTF-8.", "body") from None
        metadata: dict[str, str] = {}
        known: dict[str, str] = {}
        for name, value in pairs:
            if match := _METADATA.fullmatch(name):
                if len(value) > 500:
                    raise _invalid("Metadata values can have up to 500 characters.", name)
                metadata[match.group(1)] = value
            elif name in ("payment_intent", "amount", "reason"):
                known[name] = value
            elif not name.startswith("expand["):
                raise _invalid(f"Received unknown parameter: {name}", name, "parameter_unknown")
        if not known.get("payment_intent"):
            raise _invalid("One of the following params should be provided for this request: payment_intent or charge.",
                           "payment_intent", "parameter_missing")
        if known.get("reason", _REASONS[0]) not in _REASONS:
            raise _invalid(f"Invalid reason: must be one of {', '.join(_REASONS)}", "reason")
        payment = self.ledger.payment(known["payment_intent"])
        currency = str(payment["currency"]) if payment else ""
        amount = _read_amount(known["amount"], currency) if "amount" in known else None
        return Plan(known["payment_intent"], amount, metadata, known.get("reason"),
                    request.headers.get("idempotency-key"))

    def create(self, plan: Plan) -> Reply:
        try:
            return json_reply(refund_json(self.ledger.create(plan)))
        except Refused as refused:
            return refused_reply(refused)

    def cancel(self, request: Request) -> Reply:
        refund_id = segments(request.path)[2]
        row = self.ledger.refund(refund_id)
        if row is None:
            return missing("refund", refund_id, "refund")
        if row["status"] != "requires_action":
            return error_reply(400, "invalid_request_error",
                               f"Refund {refund_id} cannot be canceled: its status is {row['status']}.",
                               code="refund_not_cancelable")
        changed = self.ledger.change(refund_id, "canceled")
        assert changed is not None
        return json_reply(refund_json(changed))

    def retrieve(self, request: Request) -> Reply:
        refund_id = segments(request.path)[2]
        row = self.ledger.refund(refund_id)
        return missing("refund", refund_id, "refund") if row is None else json_reply(refund_json(row))

    def payment(self, request: Request) -> Reply:
        payment_ref = segments(request.path)[2]
        row = self.ledger.payment(payment_ref)
        if row is None:
            return missing("payment_intent", payment_ref, "intent")
        expand = any(n.startswith("expand[") and v == "latest_charge" for n, v in read_form(request.query))
        return json_reply(payment_json(row, self.ledger.refunded(payment_ref), expand_charge=expand))

    def listed(self, request: Request, *, lag: float = 0.0, lie: str | None = None) -> Reply:
        query = dict(read_form(request.query))
        asked = query.get("limit", "10")
        limit = int(asked) if _WHOLE.fullmatch(asked) else 0
        if not 1 <= limit <= 100:
            return error_reply(400, "invalid_request_error", "Limit is 1 to 100.", param="limit")
        after_seq = None
        if start := query.get("starting_after"):
            row = self.ledger.refund(start)
            if row is None:
                return missing("refund", start, "starting_after", 400)
            after_seq = int(row["seq"])
        gte = query.get("created[gte]")
        if gte is not None and not _WHOLE.fullmatch(gte):
            return error_reply(400, "invalid_request_error", "Invalid timestamp.", param="created[gte]")
        rows = self.ledger.listed(
            payment_ref=query.get("payment_intent", ""), after_seq=after_seq,
            created_gte=float(gte) if gte else None, newest=self.ledger.clock.now() - lag, limit=limit,
        )
        data, more = [refund_json(r) for r in rows[:limit]], len(rows) > limit
        if lie == "has_more":
            data, more = data[: max(1, len(data) // 2)] if len(data) > 1 else [], False
        elif lie == "lost_entry":
            data = data[1:]
        return json_reply({"object": "list", "url": "/v1/refunds", "has_more": more, "data": data})


def _read_amount(text: str, currency: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise _invalid(f"Invalid integer: {text[:40]}", "amount", "parameter_invalid_integer")
    if int(text) < 1:
        raise _invalid("This value must be greater than or equal to 1.", "amount", "parameter_invalid_integer")
    minor = from_wire(int(text), currency)
    if minor is None:
        raise _invalid(f"The amount {text} cannot be refunded in {currency.lower()}.", "amount", "invalid_amount")
    return minor


def authorized(request: Request) -> Reply | None:
    """None when the request carries a key, else the 401."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.startswith("sk_"):
        return None
    return error_reply(401, "invalid_request_error", "You did not provide an API key." if not key else
                       "Invalid API Key provided.")


def listing_bends(met: dict[str, Any]) -> dict[str, Any]:
    """The arguments that a data fault adds to `Provider.listed`."""
    armed = met.get("data")
    if armed is None:
        return {}
    return {"lag": armed.values["seconds"]} if armed.fault.code == "F25" else {"lie": armed.values["lie"]}
