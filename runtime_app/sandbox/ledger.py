"""The provider's ledger: payments, the refunds of each, and the changes that are due later by the sandbox's clock."""

from __future__ import annotations

import json
import secrets
import sqlite3
from dataclasses import dataclass

from runtime_app.sandbox.clock import Clock
from runtime_app.sandbox.store import Store

COUNTS = ("succeeded", "pending", "requires_action")  # what lowers the unrefunded amount; failed and canceled do not
STATUSES = (*COUNTS, "failed", "canceled")


@dataclass(slots=True)
class Refused(Exception):
    """The ledger says no; `code` as Stripe names it."""

    code: str
    message: str
    param: str | None = None
    status: int = 400


@dataclass(slots=True)
class Plan:
    """A refund about to be made, and how a fault bends it."""

    payment_ref: str
    amount_minor: int | None
    metadata: dict[str, str]
    reason: str | None = None
    idempotency_key: str | None = None
    status: str = "succeeded"
    pending_reason: str | None = None
    failure_reason: str | None = None
    due_after: float | None = None
    due_status: str | None = None
    currency: str | None = None


class Ledger:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    def payment(self, payment_ref: str) -> sqlite3.Row | None:
        return self.store.one("SELECT * FROM payments WHERE payment_ref = ?", payment_ref)

    def refunded(self, payment_ref: str) -> int:
        """ISO minor units that are refunded or on their way."""
        row = self.store.one(
            "SELECT coalesce(sum(amount_minor), 0) AS total FROM refunds WHERE payment_ref = ?"
            " AND status IN ('succeeded', 'pending', 'requires_action')", payment_ref,
        )
        return int(row["total"]) if row else 0

    def refund(self, refund_id: str) -> sqlite3.Row | None:
        return self.store.one("SELECT * FROM refunds WHERE id = ?", refund_id)

    def create(self, plan: Plan) -> sqlite3.Row:
        """Book a refund, or raise Refused. A missing amount means all that is left."""
        payment = self.payment(plan.payment_ref)
        if payment is None:
            raise Refused("resource_missing", f"No such payment_intent: '{plan.payment_ref}'", "payment_intent", 404)
        left = int(payment["captured_minor"]) - self.refunded(plan.payment_ref)
        if left <= 0:
            raise Refused("charge_already_refunded", f"Charge {charge_id(plan.payment_ref)} has already been refunded.")
        amount = left if plan.amount_minor is None else plan.amount_minor
        if amount > left:
            raise Refused(
                "amount_too_large", f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})",
                "amount",
            )
        return self._insert(plan, amount, plan.currency or str(payment["currency"]))

    def _insert(self, plan: Plan, amount: int, currency: str) -> sqlite3.Row:
        now = self.clock.now()
        status, due_at, due_status = plan.status, None, None
        if plan.due_status is not None and plan.due_after is not None:
            if plan.due_after <= 0:
                status = plan.due_status
            else:
                due_at, due_status = now + plan.due_after, plan.due_status
        refund_id = "re_" + secrets.token_hex(12)
        with self.store.together():
            self.store.run(
                "INSERT INTO refunds (id, payment_ref, amount_minor, currency, status, operation_id, metadata, reason,"
                " failure_reason, pending_reason, idempotency_key, created, due_at, due_status)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                refund_id, plan.payment_ref, amount, currency, status, plan.metadata.get("operation_id"),
                json.dumps(plan.metadata), plan.reason, plan.failure_reason,
                plan.pending_reason if status == "pending" else None, plan.idempotency_key, now, due_at, due_status,
            )
            self.touch_order(plan.payment_ref)
        row = self.refund(refund_id)
        assert row is not None
        return row

    def change(self, refund_id: str, status: str) -> sqlite3.Row | None:
        """Give a refund another status now; None when there is no such refund."""
        row = self.refund(refund_id)
        if row is None:
            return None
        with self.store.together():
            self.store.run(
                "UPDATE refunds SET status = ?, due_at = NULL, due_status = NULL, pending_reason = NULL WHERE id = ?",
                status, refund_id,
            )
            self.touch_order(str(row["payment_ref"]))
        return self.refund(refund_id)

    def settle_due(self) -> None:
        """Make the status changes whose time has come."""
        for row in self.store.all(
            "SELECT id, due_status FROM refunds WHERE due_at IS NOT NULL AND due_at <= ? ORDER BY due_at, seq",
            self.clock.now(),
        ):
            self.change(str(row["id"]), str(row["due_status"]))

    def touch_order(self, payment_ref: str) -> None:
        """The order whose payment this is has changed: it gets a new version."""
        self.store.run(
            "UPDATE orders SET version = version + 1 WHERE (tenant, order_ref) ="
            " (SELECT tenant, order_ref FROM payments WHERE payment_ref = ?)", payment_ref,
        )

    def listed(self, *, payment_ref: str, after_seq: int | None, created_gte: float | None, newest: float,
               limit: int) -> list[sqlite3.Row]:
        """Newest first; one more than `limit`, so that the caller sees whether there is more."""
        sql, values = "SELECT * FROM refunds WHERE created <= ?", [newest]
        for clause, value in (("payment_ref = ?", payment_ref or None), ("seq < ?", after_seq),
                              ("created >= ?", created_gte)):
            if value is not None:
                sql += " AND " + clause
                values.append(value)  # type: ignore[arg-type]
        return self.store.all(sql + " ORDER BY seq DESC LIMIT ?", *values, limit + 1)


def charge_id(payment_ref: str) -> str:
    return "ch_" + payment_ref.removeprefix("pi_")
