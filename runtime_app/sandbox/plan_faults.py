"""The faults of the data layer: each bends a refund that is about to be made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime_app.sandbox.ledger import Plan

Values = dict[str, Any]


def _pending(plan: Plan, values: Values) -> None:
    plan.status, plan.pending_reason = "pending", "processing"
    plan.failure_reason = values["failure_reason"]
    plan.due_after, plan.due_status = values["seconds"], values["then"]


def _requires_action(plan: Plan, values: Values) -> None:
    plan.status = "requires_action"
    plan.due_after, plan.due_status = values["seconds"], values["then"]


def _comes_back(plan: Plan, values: Values) -> None:
    plan.due_after, plan.due_status = values["seconds"], "failed"
    plan.failure_reason = "expired_or_canceled_card"


def _no_balance(plan: Plan, values: Values) -> None:
    plan.status, plan.pending_reason = "pending", "insufficient_funds"


def _altered(plan: Plan, values: Values) -> None:
    if values["currency"] is not None:
        plan.currency = values["currency"].upper()
    if values["amount_minor"] is not None:
        plan.amount_minor = values["amount_minor"]
    elif values["currency"] is None and plan.amount_minor is not None:
        plan.amount_minor = plan.amount_minor - 1 or 2


def _other_payment(plan: Plan, values: Values) -> None:
    plan.payment_ref = values["payment_ref"] or plan.payment_ref


def _no_metadata(plan: Plan, values: Values) -> None:
    plan.metadata = {}


PLANS: dict[str, Callable[[Plan, Values], None]] = {
    "F21": _pending, "F22": _requires_action, "F23": _comes_back, "F24": _no_balance, "F29": _altered,
    "F30": _other_payment, "F31": _no_metadata,
}
