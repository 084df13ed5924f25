"""The page for a browser: every fault as a form, what waits, and what happened lately. It needs no script."""

from __future__ import annotations

from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from runtime_app.sandbox import passing
from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.fault_table import FAULTS
from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.page_forms import ACTION, armed_list, fault_form
from runtime_app.sandbox.page_tables import notices_table, refunds_table, requests_table

STYLE = Reply(200, Path(__file__).with_name("page.css").read_bytes(), {"x-content-type-options": "nosniff"},
              content_type="text/css; charset=utf-8")
_POLICY = ("default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none';"
           " frame-ancestors 'none'")
_HEADERS = {"content-security-policy": _POLICY, "x-content-type-options": "nosniff", "cache-control": "no-store",
            "referrer-policy": "same-origin", "x-frame-options": "DENY", "cross-origin-opener-policy": "same-origin"}
_GROUPS = (
    ("Connection", 1, 9), ("Answer", 10, 19), ("Time", 20, 24), ("Queries", 25, 28), ("Money", 29, 35),
    ("Notices", 36, 41), ("Statement", 42, 48), ("Everything", 49, 50),
)


def wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def is_foreign(request: Request) -> bool:
    """Whether a page of another site sent this: there is no sign-in that would stop it."""
    if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return True
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != request.headers.get("host", "")


def page_reply(sandbox: Sandbox, trouble: str = "", status: int = 200) -> Reply:
    """The whole page; `trouble` is the sentence about a form that could not be used."""
    alert = f'<p class="trouble" role="alert">{escape(trouble)}</p>' if trouble else ""
    now = escape(sandbox.clock.iso()[:19].replace("T", " "))
    body = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Sandbox: faults</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/_sandbox/page.css"></head>
<body><a class="skip" href="#faults">To the faults</a>
<header><h1>Sandbox</h1><p>The payment provider of this trial. Here you choose what goes wrong with it next.</p>
<p class="quiet">Its clock: {now} UTC. <a href="{ACTION}">Load again</a> to see what happened since.</p>
{passing.form(ACTION)}</header>
<main>{alert}
<section aria-labelledby="armed"><h2 id="armed">Waiting to happen</h2>{armed_list(sandbox)}</section>
<section aria-labelledby="faults"><h2 id="faults">Faults</h2>{_groups()}</section>
{requests_table(sandbox)}{refunds_table(sandbox)}{notices_table(sandbox)}
</main></body></html>
"""
    return Reply(status, body.encode("utf-8", "replace"), dict(_HEADERS), content_type="text/html; charset=utf-8")


def _groups() -> str:
    return "".join(
        f"<h3>{name}</h3>" + "".join(fault_form(FAULTS[f"F{n}"]) for n in range(first, last + 1))
        for name, first, last in _GROUPS
    )
