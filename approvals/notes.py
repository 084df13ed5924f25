"""What people do about an open approval besides deciding it, as a part of transitions: a note, and whose it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self
from uuid import UUID

from approvals.intents import tell
from runtime_app import outbox, rows
from runtime_app.ids import new_id
from runtime_app.transitions import Locked, Refusal

_CLAIMS = {"claimed", "released", "handed_over"}


@dataclass(frozen=True, slots=True)
class AddNote:
    """Refused as `already_decided` when the approval is no longer open, and as `claimed`, with the person's id as `by`,
    when somebody else has it in hand. `holder` is who has it afterwards, for the kinds that say so.
    """

    approval_id: UUID
    kind: str
    person_id: int | None
    text: str = ""
    other_id: int | None = None
    holder: int | None = None

    rank: ClassVar[int] = 11
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        found = {
            row[0]: row[1:]
            for row in rows.run(
                "SELECT id, state, claimed_by_id FROM approvals_approval WHERE id = ANY(%s) ORDER BY id"
                " FOR NO KEY UPDATE",
                [[p.approval_id for _, p in wanted]],
            )
        }
        return {row.id: refusal for row, p in wanted if (refusal := p._judge(*found[p.approval_id]))}

    def _judge(self, state: str, claimed_by: int | None) -> Refusal | None:
        if state != "open":
            return Refusal("already_decided")
        if self.kind in _CLAIMS and claimed_by not in (None, self.person_id, self._taken_from):
            return Refusal("claimed", {"by": claimed_by})
        return None

    @property
    def _taken_from(self) -> int | None:
        """Out of whose hand the system takes it."""
        return self.other_id if self.person_id is None and self.kind == "released" else None

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        noted = [(new_id(), row, p) for row, p in wanted]
        rows.insert(
            "approvals_note",
            (("id", "uuid"), ("tenant_id", "uuid"), ("approval_id", "uuid"), ("kind", "text"), ("person_id", "bigint"),
             ("other_id", "bigint"), ("text", "text"), ("at", "timestamptz")),
            [(id, row.tenant_id, p.approval_id, p.kind, p.person_id, p.other_id, p.text, row.now)
             for id, row, p in noted],
        )
        outbox.put([
            (row.tenant_id, row.id, tell(p.approval_id, p.kind, to=p.other_id, once=str(id)), row.now)
            for id, row, p in noted if p.kind == "handed_over"
        ])
        for row, p in wanted:
            if p.kind in _CLAIMS:
                rows.run(
                    "UPDATE approvals_approval SET claimed_by_id = %s, claimed_at = CASE WHEN %s::bigint IS NULL"
                    " THEN NULL ELSE %s::timestamptz END WHERE id = %s",
                    [p.holder, p.holder, row.now, p.approval_id],
                )
