"""The sandbox's file: one SQLite database that survives kill -9 of the process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

_SCHEMA = """
CREATE TABLE IF NOT EXISTS clock (advanced REAL NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
  tenant TEXT NOT NULL, order_ref TEXT NOT NULL, currency TEXT NOT NULL, destination TEXT, note TEXT,
  version INTEGER NOT NULL, PRIMARY KEY (tenant, order_ref));
CREATE TABLE IF NOT EXISTS payments (
  payment_ref TEXT PRIMARY KEY, tenant TEXT NOT NULL, order_ref TEXT NOT NULL, position INTEGER NOT NULL,
  captured_minor INTEGER NOT NULL, currency TEXT NOT NULL, created REAL NOT NULL);
CREATE INDEX IF NOT EXISTS payments_order ON payments (tenant, order_ref, position);
CREATE TABLE IF NOT EXISTS refunds (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, payment_ref TEXT NOT NULL,
  amount_minor INTEGER NOT NULL, currency TEXT NOT NULL, status TEXT NOT NULL, operation_id TEXT,
  metadata TEXT NOT NULL, reason TEXT, failure_reason TEXT, pending_reason TEXT, idempotency_key TEXT,
  created REAL NOT NULL,
  due_at REAL, due_status TEXT);
CREATE INDEX IF NOT EXISTS refunds_payment ON refunds (payment_ref, seq);
CREATE INDEX IF NOT EXISTS refunds_due ON refunds (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS keys (
  key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, status INTEGER NOT NULL, body BLOB NOT NULL, created REAL NOT NULL);
CREATE TABLE IF NOT EXISTS queue (
  id INTEGER PRIMARY KEY, due_at REAL NOT NULL, method TEXT NOT NULL, target TEXT NOT NULL, headers TEXT NOT NULL,
  body BLOB NOT NULL, holds_key INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS write_backs (
  operation_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, order_ref TEXT NOT NULL, payment_ref TEXT NOT NULL,
  amount_minor INTEGER NOT NULL, status TEXT NOT NULL, provider_ref TEXT, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
  idempotency_key TEXT, operation_id TEXT, payment_ref TEXT, order_ref TEXT, answered TEXT NOT NULL, fault TEXT,
  body BLOB NOT NULL);
"""


class Store:
    """One connection, used by one thread. Rows come back as sqlite3.Row."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA journal_mode = WAL")
        # A killed process loses nothing that was written; only a crash of the whole machine could, and this is a trial.
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.executescript(_SCHEMA)
        self._depth = 0

    def all(self, sql: str, *values: object) -> list[sqlite3.Row]:
        return self.db.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self.db.execute(sql, values).fetchone()
        return row

    def run(self, sql: str, *values: object) -> sqlite3.Cursor:
        return self.db.execute(sql, values)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything inside is written, or nothing; may be nested."""
        if self._depth:
            yield
            return
        self._depth += 1
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        finally:
            self._depth -= 1

    def close(self) -> None:
        self.db.close()
