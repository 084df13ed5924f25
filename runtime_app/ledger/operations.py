"""Operations as parts of transitions: handed over for sending, and what became known of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Self
from uuid import UUID

from runtime_app import rows
from runtime_app.states import UNRESOLVED, OperationState
from runtime_app.transitions import After, Locked, Refusal

_INSERT = (
    ("id", "uuid"), ("tenant_id", "uuid"), ("task_id", "uuid"), ("effect", "text"), ("ordinal", "int"),
    ("account", "text"), ("order_ref", "text"), ("payment_ref", "text"), ("amount_minor", "bigint"),
    ("currency", "text"), ("exponent", "smallint"), ("idempotency_key", "text"), ("request_body", "bytea"),
    ("request_sha256", "text"), ("api_version", "text"), ("authority", "jsonb"), ("fingerprint", "text"),
    ("state", "text"), ("first_submit_at", "timestamptz"), ("last_possible_send_at", "timestamptz"),
    ("next_check_at", "timestamptz"), ("created_at", "timestamptz"), ("checks", "int"), ("absents", "int"),
    ("resends", "int"), ("resend_disabled", "bool"), ("note", "text"),
)


@dataclass(frozen=True, slots=True)
class SubmitOperation:
    """The frozen request, handed over for sending; refused as `sibling_in_flight` while the payment has another one.

    An operation that was prepared before (proved not sent) goes on as it is: its request is not frozen twice.
    """

    id: UUID
    effect: str
    ordinal: int
    account: str
    order_ref: str
    payment_ref: str
    amount_minor: int
    currency: str
    exponent: int
    idempotency_key: str
    request_body: bytes
    request_sha256: str
    api_version: str
    authority: Mapping[str, Any]
    fingerprint: str
    send_within: float  # seconds after which this worker sends nothing any more

    rank: ClassVar[int] = 20
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        # An insert waits for another batch's of the same payment: in one order, nobody waits in a circle.
        wanted = sorted(wanted, key=lambda one: one[1]._payment(one[0]))
        inserted = rows.insert(
            "runtime_app_operation", _INSERT, [p._values(row) for row, p in wanted],
            "ON CONFLICT DO NOTHING RETURNING id",
        )
        stored = {r[0] for r in inserted}
        again = [(row, p) for row, p in wanted if p.id not in stored]
        if again:  # one a payment: the others are its siblings
            first = {p._payment(row): (row, p) for row, p in reversed(again)}
            stored |= cls._resubmit(list(first.values()))
        return {row.id: Refusal("sibling_in_flight") for row, p in wanted if p.id not in stored}

    @classmethod
    def _resubmit(cls, again: Sequence[tuple[Locked, Self]]) -> set[UUID]:
        now = again[0][0].now
        found = rows.run(
            "UPDATE runtime_app_operation AS o SET state = 'submitting', last_possible_send_at = w.until,"
            # What was proved not to have been sent is no first submit: ages and the key's window begin anew.
            " first_submit_at = w.now, next_check_at = w.until, authority = w.authority, fingerprint = w.fingerprint"
            " FROM unnest(%s::uuid[], %s::timestamptz[], %s::timestamptz[], %s::jsonb[], %s::text[])"
            " AS w(id, now, until, authority, fingerprint)"
            " WHERE o.id = w.id AND o.state = 'prepared' AND NOT EXISTS (SELECT 1 FROM runtime_app_operation s"
            " WHERE s.tenant_id = o.tenant_id AND s.account = o.account AND s.payment_ref = o.payment_ref"
            " AND s.state = ANY(%s)) RETURNING o.id",
            [[p.id for _, p in again], [now for _ in again],
             [now + timedelta(seconds=p.send_within) for _, p in again],
             [json.dumps(dict(p.authority)) for _, p in again], [p.fingerprint for _, p in again], sorted(UNRESOLVED)],
        )
        return {r[0] for r in found}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None

    def _payment(self, row: Locked) -> tuple[str, str, str]:
        return str(row.tenant_id), self.account, self.payment_ref

    def _values(self, row: Locked) -> rows.Row:
        until = row.now + timedelta(seconds=self.send_within)
        return (
            self.id, row.tenant_id, row.id, self.effect, self.ordinal, self.account, self.order_ref, self.payment_ref,
            self.amount_minor, self.currency, self.exponent, self.idempotency_key, self.request_body,
            self.request_sha256, self.api_version, json.dumps(dict(self.authority)), self.fingerprint,
            OperationState.SUBMITTING, row.now, until, until, row.now, 0, 0, 0, False, "",
        )


@dataclass(frozen=True, slots=True)
class LearnOperation:
    """What is known of an operation from now on. `check` says when to look next (None: no more)."""

    id: UUID
    state: OperationState
    check: After | None
    evidence_id: UUID | None = None  # stored with a state that is an end
    provider_ref: str | None = None
    checks: int = 0
    absents: int = 0
    resends: int = 0
    resend_disabled: bool = False
    note: str = ""
    send_within: float | None = None  # a resend is allowed until then; None leaves the last possible send as it is

    rank: ClassVar[int] = 22
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        values = [
            (p.id, p.state, p.check and row.now + timedelta(seconds=p.check.seconds), p.evidence_id, p.provider_ref,
             p.checks, p.absents, p.resends, p.resend_disabled, p.note,
             None if p.send_within is None else row.now + timedelta(seconds=p.send_within))
            for row, p in wanted
        ]
        rows.run(
            "UPDATE runtime_app_operation AS o SET state = w.state, next_check_at = w.next_check,"
            " resolved_by_id = w.evidence, provider_ref = coalesce(w.provider_ref, o.provider_ref), checks = w.checks,"
            " absents = w.absents, resends = greatest(o.resends, w.resends), resend_disabled = w.resend_disabled,"
            " note = w.note,"
            " last_possible_send_at = coalesce(w.send_until, o.last_possible_send_at)"
            " FROM unnest(%s::uuid[], %s::text[], %s::timestamptz[], %s::uuid[], %s::text[], %s::int[], %s::int[],"
            " %s::int[], %s::bool[], %s::text[], %s::timestamptz[]) AS w(id, state, next_check, evidence,"
            " provider_ref, checks, absents, resends, resend_disabled, note, send_until) WHERE o.id = w.id",
            [list(column) for column in zip(*values, strict=True)],
        )
        resolved = [p.id for _, p in wanted if p.state not in UNRESOLVED]
        if resolved:
            _wake_siblings(resolved)


@dataclass(frozen=True, slots=True)
class Unmoved:
    """Refuses as `moved_on` when the outcome is no longer what it `was` when the provider was asked: somebody else has
    seen the same truth, or a newer one, and has followed it."""

    id: UUID
    was: OperationState

    rank: ClassVar[int] = 21
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        found = rows.run(
            "SELECT id, state FROM runtime_app_operation WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE",
            [[part.id for _, part in wanted]],
        )
        states: dict[UUID, str] = dict(found)
        return {row.id: Refusal("moved_on") for row, part in wanted if states.get(part.id) != part.was}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None


@dataclass(frozen=True, slots=True)
class FollowMoney:
    """A proved outcome gives way to a later truth: executed after all, or returned. Only the money's own facts move.

    What was executed after all is looked at once more: another look, or a hint, may have come between question and
    answer.
    """

    id: UUID
    state: OperationState
    evidence_id: UUID
    provider_ref: str | None = None

    rank: ClassVar[int] = 23
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        for _, part in wanted:
            rows.run(
                "UPDATE runtime_app_operation SET state = %s, resolved_by_id = %s,"
                " next_check_at = CASE WHEN %s THEN runtime_now() END,"
                " provider_ref = coalesce(provider_ref, %s), note = 'a late truth' WHERE id = %s",
                [part.state, part.evidence_id, part.state == OperationState.SUCCEEDED, part.provider_ref, part.id],
            )


def _wake_siblings(resolved: Sequence[UUID]) -> None:
    # Best effort: a sibling that is locked just now, or parks a moment later, is found by the clock.
    rows.run(
        "UPDATE runtime_app_task SET parked_reason = NULL, due_at = runtime_now() WHERE id IN ("
        " SELECT t.id FROM runtime_app_task t JOIN runtime_app_operation o"
        " ON o.tenant_id = t.tenant_id AND o.payment_ref = t.payment_ref"
        " WHERE o.id = ANY(%s) AND t.id <> o.task_id AND t.status = 'ready' AND t.parked_reason = 'sibling_in_flight'"
        " FOR NO KEY UPDATE OF t SKIP LOCKED)",
        [list(resolved)],
    )


def wake_unblocked() -> int:
    """Wake every task that was parked for a case when no case stops its payment or order any more; returns how many."""
    return len(
        rows.run(
            "UPDATE runtime_app_task SET parked_reason = NULL, due_at = runtime_now() WHERE id IN ("
            " SELECT t.id FROM runtime_app_task t WHERE t.status = 'ready' AND t.parked_reason = 'case_open'"
            " AND NOT EXISTS (SELECT 1 FROM runtime_app_case c WHERE c.tenant_id = t.tenant_id AND c.state = 'open'"
            " AND c.blocks <> 'nothing' AND ((c.blocks = 'order' AND c.order_ref = t.order_ref)"
            " OR (c.payment_ref <> '' AND c.payment_ref = t.payment_ref))) FOR NO KEY UPDATE SKIP LOCKED) RETURNING id"
        )
    )


def wake_free_siblings() -> int:
    """Wake every parked sibling whose payment has nothing unresolved any more; returns how many."""
    return len(
        rows.run(
            "UPDATE runtime_app_task SET parked_reason = NULL, due_at = runtime_now() WHERE id IN ("
            " SELECT t.id FROM runtime_app_task t WHERE t.status = 'ready' AND t.parked_reason = 'sibling_in_flight'"
            " AND NOT EXISTS (SELECT 1 FROM runtime_app_operation o WHERE o.tenant_id = t.tenant_id"
            " AND o.payment_ref = t.payment_ref AND o.state = ANY(%s)) FOR NO KEY UPDATE SKIP LOCKED) RETURNING id",
            [sorted(UNRESOLVED)],
        )
    )


@dataclass(frozen=True, slots=True)
class UnlessCancelWished:
    """Refuses as `cancel_wished` when somebody has asked to cancel since the task was read; the wish moves no guard."""

    rank: ClassVar[int] = 5
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {row.id: Refusal("cancel_wished") for row, _ in wanted if row.cancel_wished}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None
