"""The payment provider: the part of Stripe v1 that refunds need."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from runtime_app.sandbox.accounts import Accounts
from runtime_app.sandbox.faults import Call
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.ledger import Ledger, Plan, Refused, charge_id
from runtime_app.sandbox.listing import WHOLE, list_reply, read_list
from runtime_app.sandbox.units import from_wire
from runtime_app.sandbox.wire import (
    charge_json,
    error_reply,
    invalid,
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


def read_call(request: Request, ledger: Ledger, accounts: Accounts) -> Call | None:
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
            return Call("list", facts | accounts.facts(request))
        case ("GET", "refunds", refund_id):
            return Call("retrieve", facts | _of_refund(ledger.refund(refund_id)))
        case ("POST", "refunds", refund_id, "cancel"):
            return Call("cancel", facts | _of_refund(ledger.refund(refund_id)))
        case ("GET", "payment_intents", payment_ref):
            return Call("payment", facts | {"payment_ref": payment_ref})
        case ("GET", "balance_transactions"):
            return Call("statement", facts | accounts.facts(request))
        case ("GET", "events"):
            return Call("events", facts | accounts.facts(request))
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
            raise invalid("The body is not form-encoded UTF-8.", "body") from None
        metadata: dict[str, str] = {}
        known: dict[str, str] = {}
        for name, value in pairs:
            if match := _METADATA.fullmatch(name):
                if len(value) > 500:
                    raise invalid("Metadata values can have up to 500 characters.", name)
                metadata[match.group(1)] = value
            elif name in ("payment_intent", "amount", "reason"):
                known[name] = value
            elif not name.startswith("expand["):
                raise invalid(f"Received unknown parameter: {name}", name, "parameter_unknown")
        if not known.get("payment_intent"):
            raise invalid("One of the following params should be provided for this request: payment_intent or charge.",
                           "payment_intent", "parameter_missing")
        if known.get("reason", _REASONS[0]) not in _REASONS:
            raise invalid(f"Invalid reason: must be one of {', '.join(_REASONS)}", "reason")
        payment = self.ledger.payment(known["payment_intent"])
        currency = str(payment["currency"]) if payment else ""
        amount = _read_amount(known["amount"], currency) if "amount" in known else None
        return Plan(known["payment_intent"], amount, metadata, known.get("reason"),
                    request.headers.get("idempotency-key"), by_request=True)

    def create(self, plan: Plan) -> Reply:
        try:
            row = self.ledger.create(plan)
            return json_reply(refund_json(row), request_id=request_id(row["id"]))
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
        changed = self.ledger.change(refund_id, "canceled", by_request=True)
        assert changed is not None
        return json_reply(refund_json(changed))

    def retrieve(self, request: Request) -> Reply:
        refund_id = segments(request.path)[2]
        row = self.ledger.refund(refund_id)
        return missing("refund", refund_id, "refund") if row is None else json_reply(refund_json(row))

    def payment(self, request: Request, *, live: bool = False) -> Reply:
        payment_ref = segments(request.path)[2]
        row = self.ledger.payment(payment_ref)
        if row is None:
            return missing("payment_intent", payment_ref, "intent")
        expand = any(n.startswith("expand[") and v == "latest_charge" for n, v in read_form(request.query))
        return json_reply(payment_json(row, self.charge(row, live) if expand else charge_id(payment_ref), live=live))

    def charge(self, payment: sqlite3.Row, live: bool = False) -> dict[str, Any]:
        ref = str(payment["payment_ref"])
        return charge_json(payment, self.ledger.refunded(ref), disputed=self.ledger.disputed(ref) > 0, live=live)

    def listed(
        self, request: Request, tenants: tuple[str, ...] | None, *, lag: float = 0.0, lie: str | None = None
    ) -> Reply:
        """Refunds, newest first: of one payment, or of the whole account."""
        asked = read_list(request.query, tenants, "payment_intent")
        payment_ref, after_seq = asked.more.get("payment_intent"), None
        if asked.after:
            row = self.ledger.refund(asked.after)
            if row is None:
                return missing("refund", asked.after, "starting_after", 400)
            after_seq = int(row["seq"])
        sql, values = asked.where("created", "refunds.payment_ref") if not payment_ref else asked.where_time("created")
        rows = self.ledger.listed(sql, values, payment_ref=payment_ref, after_seq=after_seq,
                                  newest=self.ledger.clock.now() - lag, limit=asked.limit)
        data, more = [refund_json(r) for r in rows[: asked.limit]], len(rows) > asked.limit
        if lie == "has_more":
            data, more = data[: max(1, len(data) // 2)] if len(data) > 1 else [], False
        elif lie == "lost_entry":
            data = data[1:]
        return list_reply("/v1/refunds", data, more)


def _read_amount(text: str, currency: str) -> int:
    if not WHOLE.fullmatch(text):
        raise invalid(f"Invalid integer: {text[:40]}", "amount", "parameter_invalid_integer")
    if int(text) < 1:
        raise invalid("This value must be greater than or equal to 1.", "amount", "parameter_invalid_integer")
    minor = from_wire(int(text), currency)
    if minor is None:
        raise invalid(f"The amount {text} cannot be refunded in {currency.lower()}.", "amount", "invalid_amount")
    return minor


def request_id(source: str) -> str:
    """The id of the request that made this refund; its answer and its events carry it."""
    return "req_" + source[3:19]


def authorized(request: Request) -> Reply | None:
    """None when the request carries a key, else the 401."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.startswith("sk_"):
        return None
    return error_reply(401, "invalid_request_error", "You did not provide an API key." if not key else
                       "Invalid API Key provided.")
