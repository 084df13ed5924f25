"""Requests that the provider has queued inside and carries out later (F20)."""

from __future__ import annotations

import json

from runtime_app.sandbox.http11 import Request
from runtime_app.sandbox.store import Store


class Queued:
    """When the next one is due is kept in memory, because every request asks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next: float | None = None
        self._look()

    def _look(self) -> None:
        row = self._store.one("SELECT min(due_at) AS at FROM queue")
        self._next = row["at"] if row is not None else None

    def add(self, request: Request, due_at: float, holds_key: bool) -> None:
        kept = {n: v for n, v in request.headers.items() if n in ("idempotency-key", "authorization")}
        self._store.run(
            "INSERT INTO queue (due_at, method, target, headers, body, holds_key) VALUES (?, ?, ?, ?, ?, ?)",
            due_at, request.method, request.target, json.dumps(kept), request.body, holds_key,
        )
        self._look()

    def is_due(self, now: float) -> bool:
        return self._next is not None and self._next <= now

    def take(self) -> Request:
        """The first one, which is then no longer queued."""
        row = self._store.one("SELECT * FROM queue ORDER BY due_at, id LIMIT 1")
        assert row is not None
        self._store.run("DELETE FROM queue WHERE id = ?", row["id"])
        self._look()
        return Request(row["method"], row["target"], json.loads(row["headers"]), row["body"])

    def holds(self, key: str) -> bool:
        """Whether a queued request holds this key, so that a resend is told to wait."""
        return self._next is not None and self._store.one(
            "SELECT 1 FROM queue WHERE holds_key = 1 AND json_extract(headers, '$.\"idempotency-key\"') = ?", key
        ) is not None
