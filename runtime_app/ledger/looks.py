"""Looks at a whole payment: its refunds at the provider, one by one, against ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.transitions import Locked, Refusal


@dataclass(frozen=True, slots=True)
class LookAtPayment:
    """Have this payment looked at soon; asked for again before that, it is one look."""

    account: str
    payment_ref: str
    why: str

    rank: ClassVar[int] = 55
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for row, part in wanted:
            ask(row.tenant_id, part.account, part.payment_ref, part.why)


def ask(tenant_id: UUID, account: str, payment_ref: str, why: str) -> None:
    """Have the payment looked at as soon as a worker is free."""
    rows.run(
        "INSERT INTO runtime_app_paymentlook AS l (id, tenant_id, account_id, payment_ref, why, due_at, tries, found)"
        " SELECT %s, a.tenant_id, a.id, %s, %s, runtime_now(), 0, '{}' FROM runtime_app_account a"
        " WHERE a.tenant_id = %s AND a.ref = %s ON CONFLICT (account_id, payment_ref) DO UPDATE"
        " SET due_at = least(coalesce(l.due_at, excluded.due_at), excluded.due_at), why = excluded.why",
        [new_id(), payment_ref, why[:200], tenant_id, account],
    )
