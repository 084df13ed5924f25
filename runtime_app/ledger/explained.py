"""Disagreements of a payment's figures, and those of which a person has said that they are right: exactly those."""

from __future__ import annotations

import json
from uuid import UUID

from runtime_app import rows

# Of the balance `b`: by how much the figures differed when a person closed the last case of it so; NULL for never.
EXPLAINED = (
    "(SELECT c.details ->> 'differs' FROM runtime_app_case c JOIN runtime_app_account ca ON ca.id = c.account_id"
    " WHERE c.tenant_id = b.tenant_id AND c.payment_ref = b.payment_ref AND ca.ref = b.account"
    " AND c.class_name = 'BALANCE_DISAGREES' AND c.outcome = 'explained' AND c.details ? 'differs'"
    " ORDER BY c.closed_at DESC LIMIT 1)"
)


def differs(*, captured: int, refunded: int) -> dict[str, int]:
    """By how many minor units the provider's figures are above those that are known here; empty when they agree."""
    return {"captured": captured, "refunded": refunded} if captured or refunded else {}


def compared(
    tenant_id: UUID, account: str, payment_ref: str, *, captured_minor: int, refunded_minor: int
) -> tuple[dict[str, int], bool]:
    """By how much the provider's figures differ from the payment's balance, and whether that is explained already."""
    found = rows.run(
        "SELECT b.captured_minor, b.refunded_minor + b.external_provider_minor,"
        f" {EXPLAINED} FROM runtime_app_balance b WHERE b.tenant_id = %s AND b.account = %s AND b.payment_ref = %s",
        [tenant_id, account, payment_ref],
    )
    if not found:
        return {}, False
    captured, refunded, explained = found[0]
    off = differs(captured=captured_minor - captured, refunded=refunded_minor - refunded)
    return off, bool(off) and explained is not None and json.loads(explained) == off
