"""The row of a notice, once it is stored: what it says as evidence, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.adapters.payments.types import Observation
from runtime_app.ledger.calls import store_evidence
from runtime_app.transitions import Locked, Refusal

EVIDENCE = "webhook_verified"
_OUTCOME_MOST = 300


@dataclass(frozen=True, slots=True)
class Told:
    """A stored notice in somebody's hand. Empty references are not given; `outcome` is empty until it was acted on."""

    id: UUID
    tenant_id: UUID
    account_id: UUID
    account: str
    provider: str
    event_id: str
    kind: str
    refund_ref: str
    operation_ref: str
    payment_ref: str
    says: str
    occurred_at: datetime | None
    body_sha256: str
    tries: int
    outcome: str

    def seen(self, adapter_version: str) -> Observation:
        """It as evidence: its references and its word, and of the body the digest only."""
        said = {
            "kind": self.kind, "says": self.says, "refund": self.refund_ref, "operation": self.operation_ref,
            "payment": self.payment_ref, "occurred_at": self.occurred_at.isoformat() if self.occurred_at else None,
        }
        return Observation(
            request_line=f"POST /hooks/{self.provider}/{self.account_id}", http_status=None,
            provider_request_id=self.event_id[:120], body_sha256=self.body_sha256, body=said, api_version="",
            adapter_version=adapter_version, complete=False, consistency="hint",
        )

    @property
    def finding(self) -> str:
        return f"says_{self.says}" if self.says else "says_nothing"


def settle(told: Told, outcome: str, *, again: float | None = None) -> bool:
    """Write down what came of it; with `again`, it is taken up once more after so many seconds.

    False when it is in another hand by now. Runs in the caller's transaction, if there is one.
    """
    return bool(
        rows.run(
            "UPDATE runtime_app_notice SET outcome = %s, due_at = runtime_now() + make_interval(secs => %s::float8),"
            " handled_at = CASE WHEN %s::float8 IS NULL THEN runtime_now() END"
            " WHERE id = %s AND tries = %s AND handled_at IS NULL RETURNING id",
            [outcome[:_OUTCOME_MOST], again, again, told.id, told.tries],
        )
    )


@dataclass(frozen=True, slots=True)
class Heard:
    """The notice is acted on together with the task it is about; refused as `other_hand` when another hand has it.

    While a worker has the task, what that worker reads may be older than the notice: then it is taken up once more
    after `again` seconds.
    """

    told: Told
    operation_id: UUID
    adapter_version: str
    woken: str
    busy: str
    again: float
    first: bool  # nobody has told the task of it yet

    rank: ClassVar[int] = 56
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        found = rows.run(
            "SELECT id, tries FROM runtime_app_notice WHERE id = ANY(%s) AND handled_at IS NULL"
            " ORDER BY id FOR NO KEY UPDATE",
            [[part.told.id for _, part in wanted]],
        )
        mine = {(id, tries) for id, tries in found}
        return {
            row.id: Refusal("other_hand") for row, part in wanted if (part.told.id, part.told.tries) not in mine
        }

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for row, part in wanted:  # one by one: each is a task of its own
            if part.first:
                keep_evidence(part.told, part.operation_id, part.adapter_version, row.now)
            busy = row.columns["lease_owner"] is not None
            settle(part.told, part.busy if busy else part.woken, again=part.again if busy else None)


def keep_evidence(told: Told, operation_id: UUID, adapter_version: str, now: datetime) -> None:
    """The notice as evidence of the operation it names. Needs a transaction of the caller's."""
    store_evidence(
        tenant_id=told.tenant_id, now=now, kind=EVIDENCE, finding=told.finding, seen=told.seen(adapter_version),
        operation_id=operation_id,
    )
