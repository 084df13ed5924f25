"""A decision is written only under the lock of its case, and only when all that it rests on still holds there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from runtime_app import access, rows
from runtime_app.adapters.payments.types import Observation
from runtime_app.chronicle import canonical
from runtime_app.desk.reading import locked
from runtime_app.desk.seen import Seen, objection
from runtime_app.ids import new_id
from runtime_app.ledger.calls import store_evidence
from runtime_app.ledger.cases import add_entry, close
from runtime_app.models import User
from runtime_app.transitions import Locked, Refusal


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person does about a case. Refuses as `changed` when it is not so any more as the person saw it.

    `close_as` is the outcome's word; `columns` are the case's own that change (owner_id, snoozed_until). The digest
    names the open cases beside this one, so the task's mark, which is worked out from them, holds as well.
    """

    person: User
    case_id: UUID
    action: str
    saw: Seen
    kind: str
    data: Mapping[str, Any]
    evidence_sha256: str
    close_as: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)

    rank: ClassVar[int] = 49
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {row.id: Refusal("changed") for row, part in wanted if not part.holds()}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for row, part in wanted:
            part.record(row.tenant_id, row.now)

    def holds(self) -> bool:
        """Lock the case and ask every rule once more, with the rights as they are at this moment."""
        access.forget(self.person)
        s = locked(self.case_id)
        return objection(s, self.person, self.action, self.saw) is None

    def record(self, tenant_id: UUID, now: datetime) -> None:
        actor = access.actor(self.person)
        if self.kind != "closed":
            add_entry(
                self.case_id, tenant_id=tenant_id, kind=self.kind, actor=actor, now=now, person_id=self.person.pk,
                data=self.data, evidence_sha256=self.evidence_sha256,
            )
        if self.close_as:
            close(
                self.case_id, tenant_id=tenant_id, outcome=self.close_as, actor=actor, now=now,
                person_id=self.person.pk, data=self.data if self.kind == "closed" else None,
                evidence_sha256=self.evidence_sha256,
            )
            return
        changes = "".join(f", {name} = %s" for name in self.columns)
        rows.run(
            f"UPDATE runtime_app_case SET revision = revision + 1{changes} WHERE id = %s AND state = 'open'",
            [*self.columns.values(), self.case_id],
        )


@dataclass(frozen=True, slots=True)
class NoSender:
    """Refuses as `sender_alive` while somebody may still send this operation, or is at the provider with it."""

    operation_id: UUID

    rank: ClassVar[int] = 4
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {row.id: Refusal("sender_alive") for row, part in wanted if not part._is_free()}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None

    def _is_free(self) -> bool:
        # The sender's own lock (senders.py), held to the end of this transaction: nobody becomes one meanwhile.
        query = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s::text, 0))"
        return bool(rows.run(query, [str(self.operation_id)])[0][0])


@dataclass(frozen=True, slots=True)
class Attested:
    """What two people state of an operation, as the evidence that its outcome rests on."""

    operation_id: UUID
    case_id: UUID
    finding: str
    body: Mapping[str, Any]
    id: UUID = field(default_factory=new_id)

    rank: ClassVar[int] = 42
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for row, part in wanted:
            store_evidence(
                id=part.id, tenant_id=row.tenant_id, now=row.now, kind="human_attestation", finding=part.finding,
                seen=part._seen(), operation_id=part.operation_id, case_id=part.case_id,
            )

    def _seen(self) -> Observation:
        body = dict(self.body)
        return Observation(
            request_line="declared by two people", http_status=None, provider_request_id=None,
            body_sha256=hashlib.sha256(canonical(body).encode()).hexdigest(), body=body, api_version="",
            adapter_version="",
        )
