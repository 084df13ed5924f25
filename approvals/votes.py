"""One person's word, given or taken back under the lock of its approval."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from approvals.counting import Vote, missing, open_reviews
from approvals.rules import Rules
from approvals.rules_json import frozen
from runtime_app import rows
from runtime_app.ids import new_id
from runtime_app.transitions import Locked, Refusal


@dataclass(frozen=True, slots=True)
class Asked:
    """An approval as it stands under its lock."""

    state: str
    deadline_at: datetime
    fingerprint: str
    rules: Rules
    agreed: tuple[Vote, ...]  # agreements that were not taken back
    places: frozenset[int]  # who has spoken, and for whom it was spoken
    nonces: frozenset[str]  # of every form that was recorded, also of what was taken back


def locked(ids: Sequence[UUID]) -> dict[UUID, Asked]:
    """Lock these approvals and read what was said to them."""
    held = rows.run(
        "SELECT id, state, deadline_at, fingerprint, rules, quorum FROM approvals_approval WHERE id = ANY(%s)"
        " ORDER BY id FOR NO KEY UPDATE",
        [list(ids)],
    )
    said: dict[UUID, list[tuple[str, Vote]]] = {}
    nonces: dict[UUID, set[str]] = {}
    for approval, nonce, stands, verdict, *vote in rows.run(
        "SELECT approval_id, nonce, withdrawn_at IS NULL, verdict, person_id, review, for_person_id"
        " FROM approvals_decision WHERE approval_id = ANY(%s) ORDER BY decided_at, id",
        [list(ids)],
    ):
        nonces.setdefault(approval, set()).add(nonce)
        if stands:
            said.setdefault(approval, []).append((verdict, Vote(*vote)))
    return {
        id: Asked(
            state, deadline, mark, frozen(json.loads(rules), quorum),
            tuple(vote for verdict, vote in said.get(id, ()) if verdict == "approve"),
            frozenset(one for _, vote in said.get(id, ()) for one in (vote.person_id, vote.place)),
            frozenset(nonces.get(id, ())),
        )
        for id, state, deadline, mark, rules, quorum in held
    }


@dataclass(frozen=True, slots=True)
class CastVote:
    """Refused as `already_decided`, `form_used`, `expired`, `stale_facts` or `not_its_turn`, judged under the lock by
    the database's clock.

    `completes` is what the caller believes: that with this vote all have agreed. When that is no longer so, the vote
    is refused as `recount` and the caller counts again.
    """

    approval_id: UUID
    person_id: int
    verdict: str
    reason: str
    nonce: str
    fingerprint: str
    basis: Mapping[str, Any]
    completes: bool
    review: str
    for_person: int | None = None

    rank: ClassVar[int] = 10
    survives: ClassVar[bool] = False

    @property
    def vote(self) -> Vote:
        return Vote(self.person_id, self.review, self.for_person)

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        found = locked([p.approval_id for _, p in wanted])
        return {row.id: refusal for row, p in wanted if (refusal := p._judge(row, found.get(p.approval_id)))}

    def _judge(self, row: Locked, asked: Asked | None) -> Refusal | None:
        if asked is None or asked.state != "open" or asked.places & {self.person_id, self.vote.place}:
            return Refusal("already_decided")
        if self.nonce in asked.nonces:
            return Refusal("form_used")
        if row.now >= asked.deadline_at:
            return Refusal("expired", {"deadline_at": asked.deadline_at})
        if asked.fingerprint != self.fingerprint:
            return Refusal("stale_facts")
        if self.verdict == "approve":
            if self.review not in [r.name for r in open_reviews(asked.rules, asked.agreed)]:
                return Refusal("not_its_turn")
            if self.completes != (not missing(asked.rules, (*asked.agreed, self.vote))):
                return Refusal("recount")
        return None

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.insert(
            "approvals_decision",
            (("id", "uuid"), ("tenant_id", "uuid"), ("approval_id", "uuid"), ("person_id", "bigint"),
             ("for_person_id", "bigint"), ("review", "text"), ("verdict", "text"), ("reason", "text"),
             ("nonce", "text"), ("fingerprint", "text"), ("basis", "jsonb"), ("decided_at", "timestamptz")),
            [(new_id(), row.tenant_id, p.approval_id, p.person_id, p.for_person, p.review, p.verdict, p.reason, p.nonce,
              p.fingerprint, json.dumps(dict(p.basis)), row.now) for row, p in wanted],
        )


@dataclass(frozen=True, slots=True)
class WithdrawVote:
    """An agreement is taken back. Refused as `already_decided` when there is none of this person in an open approval,
    and as `expired` when the time to decide has passed."""

    approval_id: UUID
    person_id: int

    rank: ClassVar[int] = 10
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        found = locked([p.approval_id for _, p in wanted])
        return {row.id: refusal for row, p in wanted if (refusal := p._judge(row, found.get(p.approval_id)))}

    def _judge(self, row: Locked, asked: Asked | None) -> Refusal | None:
        if asked is None or asked.state != "open" or self.person_id not in {v.person_id for v in asked.agreed}:
            return Refusal("already_decided")
        return Refusal("expired", {"deadline_at": asked.deadline_at}) if row.now >= asked.deadline_at else None

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        rows.run(
            "UPDATE approvals_decision AS d SET withdrawn_at = w.at"
            " FROM unnest(%s::uuid[], %s::bigint[], %s::timestamptz[]) AS w(approval, person, at)"
            " WHERE d.approval_id = w.approval AND d.person_id = w.person AND d.withdrawn_at IS NULL",
            [[p.approval_id for _, p in wanted], [p.person_id for _, p in wanted], [row.now for row, _ in wanted]],
        )
