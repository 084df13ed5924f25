"""One person's vote, cast under the lock of its approval."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.transitions import Locked, Refusal


@dataclass(frozen=True, slots=True)
class CastVote:
    """Refused as `already_decided`, `expired` or `stale_facts`, judged under the lock by the database's clock.

    `completes` is what the caller believes: that this vote meets the quorum. When that is no longer so, the vote is
    refused as `recount` and the caller counts again.
    """

    approval_id: UUID
    person_id: int
    verdict: str
    reason: str
    nonce: str
    fingerprint: str
    basis: Mapping[str, Any]
    completes: bool

    rank: ClassVar[int] = 10
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        found = {
            r[0]: r[1:]
            for r in rows.run(
                "SELECT id, state, deadline_at, fingerprint, quorum, (SELECT count(*) FROM approvals_decision d"
                " WHERE d.approval_id = a.id AND d.verdict = 'approve'), (SELECT array_agg(d.person_id)"
                " FROM approvals_decision d WHERE d.approval_id = a.id)"
                " FROM approvals_approval a WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE",
                [[p.approval_id for _, p in wanted]],
            )
        }
        # The row above was locked at its place in the statement, the counts read before the wait: votes are guarded
        # by the task's lock too, which every vote takes first, so they cannot have moved in between.
        return {row.id: refusal for row, p in wanted if (refusal := p._judge(row, found.get(p.approval_id)))}

    def _judge(self, row: Locked, found: rows.Row | None) -> Refusal | None:
        if found is None:
            return Refusal("already_decided")
        state, deadline_at, fingerprint, quorum, approvals, people = found
        if state != "open" or self.person_id in (people or []):
            return Refusal("already_decided")
        if row.now >= deadline_at:
            return Refusal("expired", {"deadline_at": deadline_at})
        if fingerprint != self.fingerprint:
            return Refusal("stale_facts")
        if self.verdict == "approve" and self.completes != (approvals + 1 >= quorum):
            return Refusal("recount")
        return None

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.insert(
            "approvals_decision",
            (("id", "uuid"), ("tenant_id", "uuid"), ("approval_id", "uuid"), ("person_id", "bigint"),
             ("verdict", "text"), ("reason", "text"), ("nonce", "text"), ("fingerprint", "text"), ("basis", "jsonb"),
             ("decided_at", "timestamptz")),
            [(new_id(), row.tenant_id, p.approval_id, p.person_id, p.verdict, p.reason, p.nonce, p.fingerprint,
              json.dumps(dict(p.basis)), row.now) for row, p in wanted],
        )
