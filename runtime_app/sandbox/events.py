"""The events of the provider: what the list of events shows and what notices carry, read from the journal."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.ledger import Ledger
from runtime_app.sandbox.listing import Asked, list_reply, read_list
from runtime_app.sandbox.provider import Provider, request_id
from runtime_app.sandbox.wire import dispute_json, missing, refund_json

API_VERSION = "2026-06-30"
_ID = re.compile(r"evt_[0-9a-f]{24}s([0-9]{1,18})t([0-9])", re.ASCII)
_IS_REFUND = "source LIKE 're%'"
_OF_TYPE = {
    "refund.created": f"was IS NULL AND {_IS_REFUND}",
    "refund.updated": f"was IS NOT NULL AND {_IS_REFUND}",
    "refund.failed": f"was IS NOT NULL AND status = 'failed' AND {_IS_REFUND}",
    "charge.refunded": "kind IN ('refund', 'payment_refund')",
    "charge.dispute.created": "kind = 'adjustment'",
}


def types(entry: sqlite3.Row) -> tuple[str, ...]:
    """The events of one entry of the journal, in their order."""
    if str(entry["source"]).startswith("du_"):
        return ("charge.dispute.created",)
    refunded = ("charge.refunded",) if entry["kind"] in ("refund", "payment_refund") else ()
    if entry["was"] is None:
        return ("refund.created", *refunded)
    return ("refund.updated", *(("refund.failed",) if entry["status"] == "failed" else ()), *refunded)


def event_json(
    event_id: str, kind: str, created: int, content: dict[str, Any], *, live: bool = False, request: str | None = None,
    key: str | None = None, previous: dict[str, Any] | None = None,
) -> dict[str, Any]:
    data = {"object": content} | ({"previous_attributes": previous} if previous else {})
    return {
        "id": event_id, "object": "event", "api_version": API_VERSION, "created": created, "data": data,
        "livemode": live, "pending_webhooks": 0, "request": {"id": request, "idempotency_key": key}, "type": kind,
    }


class Events:
    def __init__(self, ledger: Ledger, provider: Provider) -> None:
        self._ledger = ledger
        self._provider = provider

    def of(self, entry: sqlite3.Row, *, live: bool = False) -> list[dict[str, Any]]:
        """All events of one entry, each with the refund as it was then, or the charge as it is now."""
        source = str(entry["source"])
        refund = self._ledger.refund(source)
        asked_for = refund is not None and entry["was"] is None and bool(entry["by_request"])
        return [
            event_json(
                f"evt_{source[3:]}s{entry['seq']}t{number}", kind, int(entry["at"]),
                self._content(kind, entry, refund, live), live=live,
                request=request_id(source) if asked_for else None,
                key=refund["idempotency_key"] if refund is not None and asked_for else None,
                previous={"status": entry["was"]} if kind == "refund.updated" else None,
            )
            for number, kind in enumerate(types(entry))
        ]

    def _content(self, kind: str, entry: sqlite3.Row, refund: sqlite3.Row | None, live: bool) -> dict[str, Any]:
        if refund is None:
            dispute = self._ledger.dispute_row(str(entry["source"]))
            assert dispute is not None
            return dispute_json(dispute, live=live)
        if kind.startswith("charge."):
            payment = self._ledger.payment(str(entry["payment_ref"]))
            assert payment is not None
            return self._provider.charge(payment, live)
        return refund_json(dict(refund) | {"status": entry["status"]})

    def listed(self, request: Request, tenants: tuple[str, ...] | None, *, live: bool = False) -> Reply:
        """Newest first."""
        asked = read_list(request.query, tenants, "type")
        after = _ID.fullmatch(asked.after) if asked.after else None
        if asked.after and after is None:
            return missing("event", asked.after, "starting_after", 400)
        start = (int(after[1]), int(after[2])) if after else None
        kind, page = asked.more.get("type"), list[dict[str, Any]]()
        for entry, number in self._newest_first(asked, start):
            if kind in (None, types(entry)[number]):
                page.append(self.of(entry, live=live)[number])
            if len(page) > asked.limit:
                break
        return list_reply("/v1/events", page[: asked.limit], len(page) > asked.limit)

    def _newest_first(self, asked: Asked, start: tuple[int, int] | None) -> Iterator[tuple[sqlite3.Row, int]]:
        sql, values = asked.where("at", "journal.payment_ref")
        if (kind := asked.more.get("type")) is not None:
            sql += " AND " + _OF_TYPE.get(kind, "0")
        if start is not None:
            sql += " AND seq <= ?"
            values.append(start[0])
        rows = self._ledger.store.all(f"SELECT * FROM journal WHERE 1{sql} ORDER BY seq DESC LIMIT ?", *values,
                                      asked.limit + 2)
        for entry in rows:
            for number in reversed(range(len(types(entry)))):
                if start is None or (entry["seq"], number) < start:
                    yield entry, number
