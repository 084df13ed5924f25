"""The control plane under `/_sandbox`: what moved, what was asked, and what shall go wrong next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from runtime_app.sandbox import passing
from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.asking import read_body, read_query, whole
from runtime_app.sandbox.control_accounts import list_accounts, put_account
from runtime_app.sandbox.control_faults import Port, arm, disarm, overview
from runtime_app.sandbox.control_notices import list_notices, send_notice
from runtime_app.sandbox.control_orders import make_order, patch_order
from runtime_app.sandbox.deliveries import Delivery
from runtime_app.sandbox.faults import Unusable
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.ledger import COUNTS, STATUSES, Refused
from runtime_app.sandbox.orders import problem
from runtime_app.sandbox.page import STYLE, is_foreign, page_reply, wants_page
from runtime_app.sandbox.page_forms import press
from runtime_app.sandbox.wire import json_reply, segments

PREFIX = "/_sandbox"


def control(sandbox: Sandbox, port: Port, request: Request) -> Delivery:
    """Answer one control request; a mistake is a 4xx with a sentence."""
    if request.method != "GET" and is_foreign(request):
        return Delivery(reply=problem(403, "A page of another site may not press anything here."))
    try:
        sandbox.catch_up()
        result = _route(sandbox, port, request)
    except Unusable as unusable:
        result = problem(422, str(unusable))
    except Refused as refused:
        result = problem(409, refused.message)
    except UnicodeError:
        result = problem(422, "The request holds text that is not Unicode.")
    return sandbox.tell(result if isinstance(result, Delivery) else Delivery(reply=result))


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


def _overview(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    if wants_page(request):
        return page_reply(sandbox)
    return json_reply(overview(sandbox, [" ".join((m, "/".join((PREFIX, *p)))) for m, *p in _ROUTES if p != [""]]))


def _refunds(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    query = read_query(request, "payment_ref", "all")
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
    asked = read_body(request)
    if set(asked) != {"status"} or asked["status"] not in STATUSES:
        raise Unusable(f"Tell the refund's new `status`, one of {', '.join(STATUSES)}.")
    row = sandbox.ledger.change(last, asked["status"])
    if row is None:
        return problem(404, "There is no such refund.")
    return json_reply({"id": row["id"], "status": row["status"]})


def _requests(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    names = ("payment_ref", "operation_id", "order_ref", "idempotency_key", "method")
    query = read_query(request, *names, "after", "limit")
    sql, values = "SELECT * FROM requests WHERE id > ?", [whole(query, "after", 0)]
    for name in names:
        if name in query:
            sql += f" AND {name} = ?"
            values.append(query[name])  # type: ignore[arg-type]
    rows = sandbox.store.all(sql + " ORDER BY id LIMIT ?", *values, whole(query, "limit", 10**6))
    return json_reply({"requests": [_told(r) for r in rows]})


def _told(row: Any) -> dict[str, Any]:
    told = {n: row[n] for n in ("id", "at", "method", "path", "idempotency_key", "operation_id", "payment_ref",
                                "order_ref", "fault")}
    answered = row["answered"]
    return told | {
        "answered": int(answered) if answered.isdigit() else answered,
        "body": row["body"].decode("utf-8", "replace"), "body_sha256": hashlib.sha256(row["body"]).hexdigest(),
    }


def _arm(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    return json_reply(arm(sandbox, port, read_body(request)).told(), 201)


def _press(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply | Delivery:
    try:
        return press(sandbox, port, request)
    except (Unusable, Refused) as wrong:
        return page_reply(sandbox, wrong.message if isinstance(wrong, Refused) else str(wrong), 422)


def _disarm(sandbox: Sandbox, port: Port, request: Request, last: str) -> Reply:
    number = None if last == "faults" else whole({"id": last}, "id", 0)
    return json_reply({"cleared": disarm(sandbox, port, number)})


def _clock(sandbox: Sandbox, port: Port, request: Request, last: str) -> Delivery:
    asked = read_body(request)
    seconds = asked.get("advance_s")
    fits = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= 10**9
    if set(asked) != {"advance_s"} or not fits:
        raise Unusable("Tell `advance_s`, a number of seconds from 0.")
    assert isinstance(seconds, int | float)
    return passing.told(sandbox, seconds)


Route = Callable[[Sandbox, Port, Request, str], "Reply | Delivery"]
_ROUTES: dict[tuple[str, ...], Route] = {
    ("GET",): _overview,
    ("GET", ""): _overview,
    ("GET", "page"): lambda sandbox, port, request, last: page_reply(sandbox),
    ("GET", "page.css"): lambda sandbox, port, request, last: STYLE,
    ("POST", "page"): _press,
    ("GET", "refunds"): _refunds,
    ("PATCH", "refunds", "*"): _change_refund,
    ("GET", "requests"): _requests,
    ("POST", "faults"): _arm,
    ("DELETE", "faults"): _disarm,
    ("DELETE", "faults", "*"): _disarm,
    ("POST", "accounts"): lambda sandbox, port, request, last: put_account(sandbox, read_body(request)),
    ("GET", "accounts"): lambda sandbox, port, request, last: list_accounts(sandbox),
    ("POST", "notices"): lambda sandbox, port, request, last: send_notice(sandbox, read_body(request)),
    ("GET", "notices"): lambda sandbox, port, request, last: list_notices(sandbox, request),
    ("POST", "orders"): lambda sandbox, port, request, last: make_order(sandbox, read_body(request)),
    ("PATCH", "orders", "*"): lambda sandbox, port, request, last: patch_order(sandbox, last, read_body(request)),
    ("POST", "clock"): _clock,
}
