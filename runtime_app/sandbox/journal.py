"""What happened to the account, one entry per change, with the booking where money moved. Only F45 and F48 change it.

Notices, the list of events and the statement are all read from here.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from runtime_app.sandbox.store import Store


@dataclass(frozen=True, slots=True)
class Booking:
    """`amount_minor` is signed: negative left the account."""

    kind: str  # refund | payment_refund | refund_failure | adjustment
    amount_minor: int
    currency: str


class Journal:
    """`last` is the number of the newest entry."""

    def __init__(self, store: Store) -> None:
        self._store = store
        row = store.one("SELECT max(seq) AS last FROM journal")
        self.last = int(row["last"] or 0) if row else 0

    def enter(
        self, *, at: float, payment_ref: str, source: str, status: str, was: str | None = None,
        by_request: bool = False, booking: Booking | None = None,
    ) -> str | None:
        """`source` is the refund or dispute, `was` its status before; None when it is new. Returns the booking's id."""
        booked = (booking.kind, booking.amount_minor, booking.currency, at) if booking else (None,) * 4
        self.last = self._store.run(
            "INSERT INTO journal (at, payment_ref, source, status, was, by_request, kind, amount_minor, currency,"
            " dated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            at, payment_ref, source, status, was, by_request, *booked,
        ).lastrowid or 0
        return txn_id(source, self.last) if booking else None

    def after(self, seq: int) -> list[sqlite3.Row]:
        return self._store.all("SELECT * FROM journal WHERE seq > ? ORDER BY seq", seq)

    def date(self, seq: int, dated: float) -> None:
        self._store.run("UPDATE journal SET dated = ? WHERE seq = ?", dated, seq)

    def line(self, txn: str) -> sqlite3.Row | None:
        """The entry whose booking has this id."""
        seq = txn.rpartition("s")[2]
        known = seq.isascii() and seq.isdigit() and len(seq) < 16
        row = self._store.one("SELECT * FROM journal WHERE seq = ? AND dated IS NOT NULL", int(seq)) if known else None
        return row if row is not None and txn_id(str(row["source"]), int(row["seq"])) == txn else None


def txn_id(source: str, seq: int) -> str:
    """The id of the booking of this entry; it need not be looked for, so it has no index."""
    return f"txn_{source[3:]}s{seq}"
