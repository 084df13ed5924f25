"""The provider's ledger: payments, the refunds of each, and the changes that are due later by the sandbox's clock."""

from __future__ import annotations

import json
import secrets
import sqlite3
from dataclasses import dataclass
from typing import Any

from runtime_app.sandbox.clock import Clock
from runtime_app.sandbox.journal import Booking, Journal
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
    by_request: bool = False  # an API request makes it; a person in the dashboard does not


class Ledger:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.journal = Journal(store)
        self._next_due = self._soonest()  # kept in memory, because every request asks
        self._disputed: dict[str, int] = {
            str(row["payment_ref"]): int(row["total"]) for row in store.all(
                "SELECT payment_ref, sum(amount_minor) AS total FROM disputes GROUP BY payment_ref")
        }

    def payment(self, payment_ref: str) -> sqlite3.Row | None:
        return self.store.one("SELECT * FROM payments WHERE payment_ref = ?", payment_ref)

    def refunded(self, payment_ref: str) -> int:
        """ISO minor units that are refunded or on their way."""
        row = self.store.one(
            "SELECT coalesce(sum(amount_minor), 0) AS total FROM refunds WHERE payment_ref = ?"
            " AND status IN ('succeeded', 'pending', 'requires_action')", payment_ref,
        )
        return int(row["total"]) if row else 0

    def disputed(self, payment_ref: str) -> int:
        """ISO minor units that the customer took back."""
        return self._disputed.get(payment_ref, 0)

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
        disputed = self.disputed(plan.payment_ref)
        amount = left if plan.amount_minor is None else plan.amount_minor
        if disputed and left - disputed < amount <= left:
            raise Refused("charge_disputed", f"Charge {charge_id(plan.payment_ref)} has been charged back; cannot issue"
                          " a refund.")
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
                self._next_due = min(due_at, self._next_due or due_at)
        refund_id = "re_" + secrets.token_hex(12)
        waits_for_money = plan.pending_reason if status == "pending" else None
        booking = None
        if _moves(status, waits_for_money):
            booking = Booking("payment_refund" if status == "pending" else "refund", -amount, currency)
        with self.store.together():
            txn = self.journal.enter(at=now, payment_ref=plan.payment_ref, source=refund_id, status=status,
                                     by_request=plan.by_request, booking=booking)
            self.store.run(
                "INSERT INTO refunds (id, payment_ref, amount_minor, currency, status, operation_id, metadata, reason,"
                " failure_reason, pending_reason, idempotency_key, created, due_at, due_status, txn)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                refund_id, plan.payment_ref, amount, currency, status, plan.metadata.get("operation_id"),
                json.dumps(plan.metadata), plan.reason, plan.failure_reason, waits_for_money, plan.idempotency_key,
                now, due_at, due_status, txn,
            )
            self.touch_order(plan.payment_ref)
        row = self.refund(refund_id)
        assert row is not None
        return row

    def change(self, refund_id: str, status: str, *, by_request: bool = False) -> sqlite3.Row | None:
        """Give a refund another status now; None when there is no such refund. Its money is booked out or back."""
        row = self.refund(refund_id)
        if row is None:
            return None
        booking = _rebooked(row, status)
        with self.store.together():
            booked = self.journal.enter(at=self.clock.now(), payment_ref=str(row["payment_ref"]), source=refund_id,
                                        status=status, was=str(row["status"]), by_request=by_request, booking=booking)
            txn, failure_txn = row["txn"], row["failure_txn"]
            if booking is not None:
                txn, failure_txn = (booked, None) if booking.amount_minor < 0 else (txn, booked)
            self.store.run(
                "UPDATE refunds SET status = ?, due_at = NULL, due_status = NULL, pending_reason = NULL, txn = ?,"
                " failure_txn = ? WHERE id = ?", status, txn, failure_txn, refund_id,
            )
            self.touch_order(str(row["payment_ref"]))
        return self.refund(refund_id)

    def dispute(self, payment_ref: str, amount_minor: int | None) -> sqlite3.Row:
        """The customer takes money back through the bank; a missing amount means all that is left. Raises Refused."""
        payment = self.payment(payment_ref)
        if payment is None:
            raise Refused("resource_missing", f"No such payment_intent: '{payment_ref}'", "payment_intent", 404)
        left = int(payment["captured_minor"]) - self.refunded(payment_ref) - self.disputed(payment_ref)
        amount = left if amount_minor is None else amount_minor
        if not 1 <= amount <= left:
            raise Refused("amount_too_large", f"Only {left} of {payment_ref} can still be disputed.", "amount_minor")
        dispute_id, now, currency = "du_" + secrets.token_hex(12), self.clock.now(), str(payment["currency"])
        with self.store.together():
            txn = self.journal.enter(at=now, payment_ref=payment_ref, source=dispute_id, status="needs_response",
                                     booking=Booking("adjustment", -amount, currency))
            self.store.run("INSERT INTO disputes VALUES (?, ?, ?, ?, ?, ?)", dispute_id, payment_ref, amount, currency,
                           now, txn)
        self._disputed[payment_ref] = self.disputed(payment_ref) + amount
        row = self.dispute_row(dispute_id)
        assert row is not None
        return row

    def dispute_row(self, dispute_id: str) -> sqlite3.Row | None:
        return self.store.one("SELECT * FROM disputes WHERE id = ?", dispute_id)

    def settle_due(self) -> None:
        """Make the status changes whose time has come."""
        if self._next_due is None or self._next_due > self.clock.now():
            return
        for row in self.store.all(
            "SELECT id, due_status FROM refunds WHERE due_at IS NOT NULL AND due_at <= ? ORDER BY due_at, seq",
            self.clock.now(),
        ):
            self.change(str(row["id"]), str(row["due_status"]))
        self._next_due = self._soonest()

    def _soonest(self) -> float | None:
        row = self.store.one("SELECT min(due_at) AS at FROM refunds WHERE due_at IS NOT NULL")
        return row["at"] if row is not None else None

    def touch_order(self, payment_ref: str) -> None:
        """The order whose payment this is has changed: it gets a new version."""
        self.store.run(
            "UPDATE orders SET version = version + 1 WHERE (tenant, order_ref) ="
            " (SELECT tenant, order_ref FROM payments WHERE payment_ref = ?)", payment_ref,
        )

    def listed(self, where: str, values: list[Any], *, payment_ref: str | None, after_seq: int | None, newest: float,
               limit: int) -> list[sqlite3.Row]:
        """Newest first; one more than `limit`, so that the caller sees whether there is more."""
        sql, bound = "SELECT * FROM refunds WHERE created <= ?" + where, [newest, *values]
        for clause, value in (("payment_ref = ?", payment_ref), ("seq < ?", after_seq)):
            if value is not None:
                sql += " AND " + clause
                bound.append(value)
        return self.store.all(sql + " ORDER BY seq DESC LIMIT ?", *bound, limit + 1)


def _moves(status: str, pending_reason: str | None) -> bool:
    """Whether the money of a refund in this status has left the account."""
    return status == "succeeded" or (status == "pending" and pending_reason != "insufficient_funds")


def _rebooked(row: sqlite3.Row, status: str) -> Booking | None:
    """What is booked when this refund changes to `status`: nothing when its money stays where it is."""
    is_out = row["txn"] is not None and row["failure_txn"] is None
    if is_out == _moves(status, None):
        return None
    amount = int(row["amount_minor"])
    return Booking("refund_failure" if is_out else "refund", amount if is_out else -amount, str(row["currency"]))


def charge_id(payment_ref: str) -> str:
    return "ch_" + payment_ref.removeprefix("pi_")
