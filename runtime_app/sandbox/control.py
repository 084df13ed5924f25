"""The control plane under `/_sandbox`: what moved, what was asked, and what shall go wrong next."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import parse_qsl

from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.clock import move_product_clock
from runtime_app.sandbox.control_orders import make_order, patch_order
from runtime_app.sandbox.deliveries import Delivery
from runtime_app.sandbox.fault_table import FAULTS, VERBS
from runtime_app.sandbox.faults import MATCHES, Unusable
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.ledger import COUNTS, STATUSES, Plan, Refused
from runtime_app.sandbox.orders import problem
from runtime_app.sandbox.wire import json_reply, segments

PREFIX = "/_sandbox"


class Port(Protocol):
    """The provider's listening port, which a fault can close."""

    def refuse(self, seconds: float | None) -> None: ...

    def accept(self) -> None: ...


def control(sandbox: Sandbox, port: Port, request: Request) -> Delivery:
    """Answer one control request; a mistake is a 4xx with a sentence."""
    try:
        sandbox.catch_up()
        result = _route(sandbox, port, request)
    except Unusable as unusable:
        result = problem(422, str(unusable))
    except Refused as refused:
        result = problem(409, refused.message)
    except UnicodeError:
        result = problem(422, "The request holds text that is not Unicode.")
    return result if isinstance(result, Delivery) else Delivery(reply=result)


def _route(sandbox: Sandbox, port: Port, request: Request) -> Reply | Delivery:
    parts = segments(request.path)[1:]
    allowed = [method for (method, *path) in _ROUTES if _fits(tuple(path), parts)]
    if not allowed:
        return problem(404, "There is no such address under /_sandbox; GET /_sandbox lists them.")
    if request.method not in allowed:
        return problem(405, f"Use {' or '.join(allowed)} here.")
    route = next(k for k in _ROUTES if k[0] == request.method and _fits(k[1:], parts))
    return _ROUTES[route](sandbox, port, request, parts[-1] if parts else "")


def _fits(pattern: tuple[str, ...], parts: list[str]) -> bool:
    return len(pattern) == len(parts) and all(p in ("*", part) for p, part in zip(pattern, parts, strict=True))


def _asked(request: Request) -> dict[str, Any]:
    try:
        asked = json.loads(request.body)
    except (ValueError, RecursionError):
        raise Unusable("The body is not JSON.") from None
    if not isinstance(asked, dict):
        raise Unusable("The body is a JSON object.")
    return asked


def _query(request: Request, *known: str) -> dict[str, str]:
    query = dict(parse_qsl(request.query, keep_blank_values=True))
    if unknown := sorted(set(query) - set(known)):
        raise Unusable(f"The query does not take {', '.join(map(repr, unknown))}; it takes {', '.join(known)}.")
    return query


def _overview(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    return json_reply({
        "now": sandbox.clock.iso(),
        "addresses": [" ".join((m, "/".join((PREFIX, *p)))) for m, *p in _ROUTES],
        "match": list(MATCHES),
        "on": {word: list(verbs) for word, verbs in VERBS.items()},
        "faults": [
            {"fault": f.code, "help": f.help, "on": list(f.on), "times": f.times,
             "parameters": {n: {"default": p.default, "help": p.help, "choices": list(p.choices) or None}
                            for n, p in f.params.items()}}
            for f in FAULTS.values()
        ],
        "armed": [a.told() for a in sandbox.faults.armed()],
    })


def _refunds(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    query = _query(request, "payment_ref", "all")
    wanted = STATUSES if query.get("all") == "1" else COUNTS
    ref = query.get("payment_ref")
    sql, values = f"SELECT * FROM refunds WHERE status IN ({','.join('?' * len(wanted))})", list(wanted)
    if ref is not None:
        sql += " AND payment_ref = ?"
        values.append(ref)
    rows = sandbox.store.all(sql + " ORDER BY seq", *values)
    names = ("id", "payment_ref", "amount_minor", "currency", "status", "operation_id", "idempotency_key")
    return json_reply({"refunds": [{n: r[n] for n in names} | {"created": int(r["created"])} for r in rows]})


def _change_refund(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    asked = _asked(request)
    if set(asked) != {"status"} or asked["status"] not in STATUSES:
        raise Unusable(f"Tell the refund's new `status`, one of {', '.join(STATUSES)}.")
    row = sandbox.ledger.change(last, asked["status"])
    if row is None:
        return problem(404, "There is no such refund.")
    return json_reply({"id": row["id"], "status": row["status"]})


def _requests(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    names = ("payment_ref", "operation_id", "order_ref", "idempotency_key", "method")
    query = _query(request, *names, "after", "limit")
    sql, values = "SELECT * FROM requests WHERE id > ?", [_whole(query, "after", 0)]
    for name in names:
        if name in query:
            sql += f" AND {name} = ?"
            values.append(query[name])  # type: ignore[arg-type]
    rows = sandbox.store.all(sql + " ORDER BY id LIMIT ?", *values, _whole(query, "limit", 10**6))
    return json_reply({"requests": [_told(r) for r in rows]})


def _whole(query: dict[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Unusable(f"`{name}` is a whole number.")
    return int(text)


def _told(row: Any) -> dict[str, Any]:
    told = {n: row[n] for n in ("id", "at", "method", "path", "idempotency_key", "operation_id", "payment_ref",
                                "order_ref", "fault")}
    answered = row["answered"]
    return told | {
        "answered": int(answered) if answered.isdigit() else answered,
        "body": row["body"].decode("utf-8", "replace"), "body_sha256": hashlib.sha256(row["body"]).hexdigest(),
    }


def _arm(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    armed = sandbox.faults.arm(_asked(request))
    if armed.fault.layer == "port":
        port.refuse(armed.values["seconds"])
    elif armed.fault.code == "F33":
        if "payment_ref" not in armed.match:
            raise Unusable("F33 needs match.payment_ref: the payment that is refunded in the dashboard.")
        sandbox.ledger.create(Plan(armed.match["payment_ref"], armed.values["amount_minor"], {}))
    return json_reply(armed.told(), 201)


def _disarm(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    port.accept()
    return json_reply({"cleared": sandbox.faults.clear()})


def _order_made(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    return make_order(sandbox, _asked(request))


def _order_patched(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    return patch_order(sandbox, last, _asked(request))


def _clock(sandbox: Sandbox, port: Port, request: Request, last: str) -> Delivery:
    asked = _asked(request)
    seconds = asked.get("advance_s")
    fits = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= 10**9
    if set(asked) != {"advance_s"} or not fits:
        raise Unusable("Tell `advance_s`, a number of seconds from 0.")
    assert isinstance(seconds, int | float)
    sandbox.advance(seconds)
    advanced, now = sandbox.clock.advanced, sandbox.clock.iso()

    def move() -> Reply:
        moved, sentence = move_product_clock(seconds)
        return json_reply({"now": now, "advanced_s": advanced, "product_clock_moved": moved, "note": sentence})

    return Delivery(elsewhere=move)


Route = Callable[[Sandbox, Port, Request, str], "Reply | Delivery"]
_ROUTES: dict[tuple[str, ...], Route] = {
    ("GET",): _overview,
    ("GET", "refunds"): _refunds,
    ("PATCH", "refunds", "*"): _change_refund,
    ("GET", "requests"): _requests,
    ("POST", "faults"): _arm,
    ("DELETE", "faults"): _disarm,
    ("POST", "orders"): _order_made,
    ("PATCH", "orders", "*"): _order_patched,
    ("POST", "clock"): _clock,
}
