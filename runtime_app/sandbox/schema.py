"""The tables of the sandbox's file, and how a file of an earlier version is brought up to them."""

from __future__ import annotations

import sqlite3

_TABLES = """
CREATE TABLE IF NOT EXISTS clock (advanced REAL NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
  tenant TEXT NOT NULL, order_ref TEXT NOT NULL, currency TEXT NOT NULL, destination TEXT, note TEXT,
  version INTEGER NOT NULL, PRIMARY KEY (tenant, order_ref));
CREATE TABLE IF NOT EXISTS payments (
  payment_ref TEXT PRIMARY KEY, tenant TEXT NOT NULL, order_ref TEXT NOT NULL, position INTEGER NOT NULL,
  captured_minor INTEGER NOT NULL, currency TEXT NOT NULL, created REAL NOT NULL, account TEXT);
CREATE INDEX IF NOT EXISTS payments_order ON payments (tenant, order_ref, position);
CREATE TABLE IF NOT EXISTS refunds (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, payment_ref TEXT NOT NULL,
  amount_minor INTEGER NOT NULL, currency TEXT NOT NULL, status TEXT NOT NULL, operation_id TEXT,
  metadata TEXT NOT NULL, reason TEXT, failure_reason TEXT, pending_reason TEXT, idempotency_key TEXT,
  created REAL NOT NULL,
  due_at REAL, due_status TEXT, txn TEXT, failure_txn TEXT);
CREATE INDEX IF NOT EXISTS refunds_payment ON refunds (payment_ref, seq);
CREATE INDEX IF NOT EXISTS refunds_due ON refunds (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS disputes (
  id TEXT PRIMARY KEY, payment_ref TEXT NOT NULL, amount_minor INTEGER NOT NULL, currency TEXT NOT NULL,
  created REAL NOT NULL, txn TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS journal (
  seq INTEGER PRIMARY KEY, at REAL NOT NULL, payment_ref TEXT NOT NULL, source TEXT NOT NULL,
  status TEXT NOT NULL, was TEXT, by_request INTEGER NOT NULL,
  kind TEXT, amount_minor INTEGER, currency TEXT, dated REAL);
CREATE INDEX IF NOT EXISTS journal_lines ON journal (dated) WHERE dated IS NOT NULL;
CREATE TABLE IF NOT EXISTS accounts (
  tenant TEXT PRIMARY KEY, api_key TEXT NOT NULL, notice_url TEXT, notice_secret TEXT);
CREATE TABLE IF NOT EXISTS notices (
  id INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL, type TEXT NOT NULL, tenant TEXT NOT NULL, source TEXT,
  payment_ref TEXT, operation_id TEXT, created REAL NOT NULL, body BLOB NOT NULL, entry INTEGER, signing TEXT NOT NULL,
  state TEXT NOT NULL, due_at REAL, answers TEXT NOT NULL, fault TEXT);
CREATE INDEX IF NOT EXISTS notices_due ON notices (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS notices_source ON notices (source);
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
# A file of version 0 has refunds and no journal: each gets the entry and the booking it would have now.
_FROM_0 = """
ALTER TABLE refunds ADD COLUMN txn TEXT;
ALTER TABLE refunds ADD COLUMN failure_txn TEXT;
INSERT INTO journal (at, payment_ref, source, status, by_request)
  SELECT created, payment_ref, id, status, 1 FROM refunds ORDER BY seq;
UPDATE journal SET kind = 'refund', amount_minor = -refunds.amount_minor, currency = refunds.currency, dated = at
  FROM refunds WHERE refunds.id = source AND (refunds.status = 'succeeded'
  OR (refunds.status = 'pending' AND coalesce(refunds.pending_reason, '') != 'insufficient_funds'));
UPDATE refunds SET txn = 'txn_' || substr(id, 4) || 's' || journal.seq FROM journal
  WHERE journal.source = refunds.id AND journal.dated IS NOT NULL;
"""
# Version 1 knew one account a tenant, so that its payments name none.
_FROM_1 = "ALTER TABLE payments ADD COLUMN account TEXT;"
_VERSION = 2


def bring_up(db: sqlite3.Connection) -> None:
    """Make the tables, or bring those of an earlier version up; all of it or nothing."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    is_new = not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'refunds'").fetchone()
    upgrade = "" if is_new else (_FROM_0 if version == 0 else "") + (_FROM_1 if version < 2 else "")
    db.executescript(f"BEGIN IMMEDIATE; {_TABLES} {upgrade} PRAGMA user_version = {_VERSION}; COMMIT")
