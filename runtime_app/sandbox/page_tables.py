"""What happened lately, as the page's tables: requests, refunds and notices, newest first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from runtime_app.sandbox.app import Sandbox

SHOWN = 30
_REQUESTS = ("when", "request", "payment", "operation", "answered", "fault")
_REFUNDS = ("when", "refund", "payment", "operation", "amount (minor units)", "status")
_NOTICES = ("when", "event", "refund", "tenant", "state", "answers", "fault")


def requests_table(sandbox: Sandbox) -> str:
    rows = sandbox.store.all("SELECT * FROM requests ORDER BY id DESC LIMIT ?", SHOWN)
    return _table("requests", "Last requests", _REQUESTS, (
        (_when(r["at"]), f"{r['method']} {r['path'][:200]}", r["payment_ref"] or r["order_ref"], r["operation_id"],
         r["answered"], r["fault"]) for r in rows))


def refunds_table(sandbox: Sandbox) -> str:
    rows = sandbox.store.all("SELECT * FROM refunds ORDER BY seq DESC LIMIT ?", SHOWN)
    return _table("refunds", "Last refunds", _REFUNDS, (
        (_when(r["created"]), r["id"], r["payment_ref"], r["operation_id"], f"{r['amount_minor']} {r['currency']}",
         r["status"]) for r in rows))


def notices_table(sandbox: Sandbox) -> str:
    rows = sandbox.store.all("SELECT * FROM notices ORDER BY id DESC LIMIT ?", SHOWN)
    return _table("notices", "Last notices", _NOTICES, (
        (_when(r["created"]), r["type"], r["source"], r["tenant"], r["state"],
         ", ".join(str(a["answered"]) for a in json.loads(r["answers"])), r["fault"]) for r in rows))


def _table(ident: str, title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape('' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    head = "".join(f"<th scope=col>{column}</th>" for column in columns)
    table = f'<div class="wide" tabindex=0 role=region aria-labelledby={ident}><table><thead><tr>{head}</tr></thead>' \
            f"<tbody>{lines}</tbody></table></div>"
    return f"<h2 id={ident}>{title}</h2>" + (
        table if lines else '<p class="quiet">None yet.</p>')


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%m-%d %H:%M:%S")
