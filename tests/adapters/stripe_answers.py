"""Answers of Stripe without a network: what would have been on the wire, as the adapter reads it."""

from __future__ import annotations

import json
from typing import Any

from runtime_app.adapters.payments.stripe_evidence import Answer, read_answer
from runtime_app.adapters.wire import Exchange


def answered(body: Any, status: int = 200, **headers: str) -> Exchange:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange(status, {name.replace("_", "-").title(): text for name, text in headers.items()}, content)


def answer(body: Any, status: int = 200, **headers: str) -> Answer:
    return read_answer(answered(body, status, **headers), "GET /v1/things", "v")


def page(data: Any, *, more: Any = False, **fields: Any) -> Answer:
    return answer({"object": "list", "has_more": more, "data": data} | fields)


def refusal(status: int, code: str) -> Answer:
    return answer({"error": {"type": "invalid_request_error", "code": code, "message": "no"}}, status)
