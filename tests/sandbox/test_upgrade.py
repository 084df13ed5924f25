"""A trial's file from before there was a journal keeps its refunds, and gets their bookings."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.sandbox.conftest import Wire
from tests.sandbox_process import SandboxProcess, running_sandbox

FIRST_VERSION = """
CREATE TABLE payments (
  payment_ref TEXT PRIMARY KEY, tenant TEXT NOT NULL, order_ref TEXT NOT NULL, position INTEGER NOT NULL,
  captured_minor INTEGER NOT NULL, currency TEXT NOT NULL, created REAL NOT NULL);
CREATE TABLE refunds (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, payment_ref TEXT NOT NULL,
  amount_minor INTEGER NOT NULL, currency TEXT NOT NULL, status TEXT NOT NULL, operation_id TEXT,
  metadata TEXT NOT NULL, reason TEXT, failure_reason TEXT, pending_reason TEXT, idempotency_key TEXT,
  created REAL NOT NULL, due_at REAL, due_status TEXT);
INSERT INTO payments VALUES ('pi_old', 'amber', 'ORD-old', 0, 1000, 'USD', 1000);
INSERT INTO refunds (id, payment_ref, amount_minor, currency, status, metadata, pending_reason, created) VALUES
  ('re_00000000000000000000000a', 'pi_old', 70, 'USD', 'succeeded', '{}', NULL, 2000),
  ('re_00000000000000000000000b', 'pi_old', 50, 'USD', 'failed', '{}', NULL, 2001),
  ('re_00000000000000000000000c', 'pi_old', 30, 'USD', 'pending', '{}', 'insufficient_funds', 2002),
  ('re_00000000000000000000000d', 'pi_old', 20, 'USD', 'pending', '{}', 'processing', 2003);
"""


def lines(sandbox: SandboxProcess) -> list[tuple[str, int]]:
    wire = Wire(sandbox)
    told = [(line["source"][-1], line["amount"]) for line in wire.listed("/v1/balance_transactions")]
    for line in wire.listed("/v1/balance_transactions", type="refund"):
        assert wire.send("GET", f"/v1/refunds/{line['source']}").json()["balance_transaction"] == line["id"]
    wire.http.close()
    return told


def test_a_file_of_the_first_version_is_brought_up(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "sandbox.sqlite3") as file:
        file.executescript(FIRST_VERSION)
    file.close()
    with running_sandbox(tmp_path) as sandbox:
        assert lines(sandbox) == [("d", -20), ("a", -70)]
        sandbox.set_refund("re_00000000000000000000000c", "succeeded")
        assert lines(sandbox) == [("c", -30), ("d", -20), ("a", -70)]
        sandbox.kill()
        sandbox.start()
        assert lines(sandbox) == [("c", -30), ("d", -20), ("a", -70)], "brought up once"
        sandbox.set_refund("re_00000000000000000000000a", "failed")
        assert lines(sandbox)[0] == ("a", 70)
