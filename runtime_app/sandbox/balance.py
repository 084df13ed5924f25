"""The account's balance transactions: the statement, read from the journal's bookings."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from runtime_app.sandbox.http11 import Reply, Request
from runtime_app.sandbox.journal import txn_id
from runtime_app.sandbox.ledger import Ledger
from runtime_app.sandbox.listing import Asked, list_reply, read_list
from runtime_app.sandbox.statement_faults import Bend, Line, StatementFaults
from runtime_app.sandbox.units import to_wire
from runtime_app.sandbox.wire import dispute_json, missing, read_form, refund_json

AVAILABLE_AFTER = 2 * 86400
URL = "/v1/balance_transactions"
_CATEGORIES = {"refund": "refund", "payment_refund": "refund", "refund_failure": "refund_failure",
               "adjustment": "dispute"}
_LINES = (
    "SELECT journal.*, refunds.operation_id, refunds.idempotency_key, p.tenant, p.order_ref FROM journal"
    " LEFT JOIN refunds ON refunds.id = journal.source LEFT JOIN payments AS p ON p.payment_ref = journal.payment_ref"
    " WHERE journal.dated IS NOT NULL"
)
_NEWEST_FIRST = " ORDER BY journal.dated DESC, journal.seq DESC"


class Balance:
    def __init__(self, ledger: Ledger, faults: StatementFaults) -> None:
        self._ledger = ledger
        self._faults = faults

    def listed(self, request: Request, tenants: tuple[str, ...] | None, facts: Mapping[str, str]) -> Reply:
        """Newest first; bent by the faults of the statement, the same way on every page of one reading."""
        asked = read_list(request.query, tenants, "type")
        reading = (request.headers.get("authorization", ""), _without_page(request.query))
        if asked.after:
            bend = self._faults.of_reading(reading)
        else:
            bend = self._faults.begin(reading, facts, "total_count" in asked.include, lambda: self._lines(asked))
        if bend is None:
            return self._straight(asked)
        if bend.unavailable is not None:
            return bend.unavailable
        return self._bent(asked, bend)

    def _straight(self, asked: Asked) -> Reply:
        sql, values = self._where(asked)
        total = None
        if "total_count" in asked.include:
            row = self._ledger.store.one(f"SELECT count(*) AS n FROM journal WHERE dated IS NOT NULL{sql}", *values)
            total = int(row["n"]) if row else 0
        if asked.after:
            start = self._ledger.journal.line(asked.after)
            if start is None:
                return missing("balance transaction", asked.after, "starting_after", 400)
            sql += " AND (journal.dated, journal.seq) < (?, ?)"
            values += [start["dated"], start["seq"]]
        rows = self._ledger.store.all(_LINES + sql + _NEWEST_FIRST + " LIMIT ?", *values, asked.limit + 1)
        data = [self.line_json(_line(row), asked) for row in rows[: asked.limit]]
        return list_reply(URL, data, len(rows) > asked.limit, total)

    def _bent(self, asked: Asked, bend: Bend) -> Reply:
        lines = bend.applied(self._lines(asked))
        begin = 0
        if asked.after:
            places = [n for n, line in enumerate(lines) if line["txn"] == asked.after]
            if not places:
                return missing("balance transaction", asked.after, "starting_after", 400)
            begin = places[-1] + 1
        end = begin + asked.limit
        # A line and its double stay on one page: the next page begins after the id, and would leave the double out.
        while 0 < end < len(lines) and lines[end]["txn"] == lines[end - 1]["txn"]:
            end += 1
        total = len(lines) + bend.total_off if "total_count" in asked.include else None
        return list_reply(URL, [self.line_json(line, asked) for line in lines[begin:end]], end < len(lines), total)

    def _lines(self, asked: Asked) -> list[Line]:
        sql, values = self._where(asked)
        return [_line(row) for row in self._ledger.store.all(_LINES + sql + _NEWEST_FIRST, *values)]

    def _where(self, asked: Asked) -> tuple[str, list[Any]]:
        sql, values = asked.where("journal.dated", "journal.payment_ref")
        if (kind := asked.more.get("type")) is not None:
            sql, values = sql + " AND journal.kind = ?", [*values, kind]
        return sql, values

    def line_json(self, line: Line, asked: Asked) -> dict[str, Any]:
        minor, created = int(line["amount_minor"]), int(line["dated"])
        amount = to_wire(abs(minor), line["currency"]) * (1 if minor > 0 else -1)
        available = created + AVAILABLE_AFTER
        return {
            "id": line["txn"], "object": "balance_transaction", "amount": amount, "available_on": available,
            "created": created, "currency": line["currency"].lower(), "description": None, "exchange_rate": None,
            "fee": 0, "fee_details": [], "net": amount, "reporting_category": _CATEGORIES[line["kind"]],
            "source": self._source(line) if "data.source" in asked.expand else line["source"],
            "status": "available" if available <= self._ledger.clock.now() else "pending", "type": line["kind"],
        }

    def _source(self, line: Line) -> dict[str, Any]:
        if "ghost" in line:
            return refund_json(line["ghost"])
        row: sqlite3.Row | None = self._ledger.refund(line["source"])
        if row is not None:
            return refund_json(row)
        row = self._ledger.dispute_row(line["source"])
        assert row is not None
        return dispute_json(row, live=False)


def _line(row: sqlite3.Row) -> Line:
    return dict(row) | {"txn": txn_id(row["source"], row["seq"])}


def _without_page(query: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in read_form(query) if pair[0] not in ("limit", "starting_after"))
