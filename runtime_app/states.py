"""The state machine of a task, as data. Everything that draws it, checks it or enforces it reads this table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    QUEUED = "queued"
    WAITING_INPUT = "waiting_input"
    WAITING_APPROVAL = "waiting_approval"
    READY = "ready"
    EXECUTING = "executing"
    RECONCILING = "reconciling"
    COMPLETED = "completed"
    REJECTED = "rejected"
    FAILED = "failed"
    CANCELLED = "cancelled"


S = Status
FINAL = frozenset({S.COMPLETED, S.REJECTED, S.FAILED, S.CANCELLED})
WAITING_FOR_PEOPLE = frozenset({S.WAITING_INPUT, S.WAITING_APPROVAL})
BEFORE_SUBMISSION = frozenset({S.QUEUED, S.WAITING_INPUT, S.WAITING_APPROVAL, S.READY})
SUBMITTED = frozenset({S.EXECUTING, S.RECONCILING})


@dataclass(frozen=True, slots=True)
class Move:
    source: Status
    target: Status
    when: str


MOVES: tuple[Move, ...] = (
    Move(S.QUEUED, S.WAITING_INPUT, "a required field is missing or ambiguous"),
    Move(S.QUEUED, S.WAITING_APPROVAL, "policy asks for people"),
    Move(S.QUEUED, S.READY, "policy asks for nobody; hold taken"),
    Move(S.QUEUED, S.REJECTED, "policy forbids"),
    Move(S.QUEUED, S.FAILED, "the order cannot be refunded"),
    Move(S.READY, S.FAILED, "the order cannot be refunded; hold released"),
    *(Move(s, S.CANCELLED, "cancelled before submission; hold released")
      for s in (S.QUEUED, S.WAITING_INPUT, S.WAITING_APPROVAL, S.READY)),
    Move(S.QUEUED, S.QUEUED, "the request was amended; judged anew"),
    Move(S.WAITING_INPUT, S.QUEUED, "input given, or the request was amended"),
    Move(S.WAITING_APPROVAL, S.READY, "enough valid decisions; hold taken with the last"),
    Move(S.WAITING_APPROVAL, S.REJECTED, "refused by a person, or expired"),
    Move(S.WAITING_APPROVAL, S.WAITING_INPUT, "an approver asks for more"),
    Move(S.WAITING_APPROVAL, S.QUEUED, "amended, bound facts changed or authority gone: judged anew"),
    Move(S.READY, S.QUEUED, "amended, bound facts changed or authority gone: judged anew; hold released"),
    Move(S.READY, S.EXECUTING, "facts and authority read again; operation and frozen request committed"),
    Move(S.EXECUTING, S.READY, "proved not sent: the same operation goes on"),
    Move(S.EXECUTING, S.COMPLETED, "the provider answered: settled"),
    Move(S.EXECUTING, S.FAILED, "the provider answered: declined; hold released"),
    Move(S.EXECUTING, S.RECONCILING, "accepted but not final, not known, or the worker died after the intent"),
    Move(S.RECONCILING, S.COMPLETED, "proved done"),
    Move(S.RECONCILING, S.FAILED, "proved declined or not executed; hold released"),
    Move(S.RECONCILING, S.CANCELLED, "cancel was wished for, and proved not executed; hold released"),
    Move(S.QUEUED, S.RECONCILING, "a restore: the operation may have been sent after the backup"),
    Move(S.READY, S.RECONCILING, "a restore: the operation may have been sent after the backup"),
)
LEGAL: frozenset[tuple[Status, Status]] = frozenset((m.source, m.target) for m in MOVES)


def is_legal(source: Status, target: Status) -> bool:
    return (source, target) in LEGAL


class OperationState(StrEnum):
    """What is known of one business effect at the provider."""

    PREPARED = "prepared"
    SUBMITTING = "submitting"
    SUCCEEDED = "succeeded"
    PENDING = "pending"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_EXECUTED = "not_executed"
    RETURNED = "returned"


O = OperationState  # noqa: E741 - a local short name for the table below
UNRESOLVED = frozenset({O.SUBMITTING, O.UNKNOWN, O.PENDING})
OPERATION_LEGAL: frozenset[tuple[OperationState, OperationState]] = frozenset({
    (O.PREPARED, O.SUBMITTING), (O.PREPARED, O.NOT_EXECUTED),
    (O.SUBMITTING, O.PREPARED), (O.SUBMITTING, O.SUCCEEDED), (O.SUBMITTING, O.PENDING),
    (O.SUBMITTING, O.FAILED), (O.SUBMITTING, O.UNKNOWN),
    (O.UNKNOWN, O.SUCCEEDED), (O.UNKNOWN, O.FAILED), (O.UNKNOWN, O.PENDING), (O.UNKNOWN, O.NOT_EXECUTED),
    (O.PENDING, O.SUCCEEDED), (O.PENDING, O.FAILED), (O.PENDING, O.UNKNOWN), (O.PENDING, O.NOT_EXECUTED),
    (O.SUCCEEDED, O.RETURNED),
    # Late truths: a terminal operation follows the money, its task does not.
    (O.FAILED, O.SUCCEEDED), (O.NOT_EXECUTED, O.SUCCEEDED),
})


class Parked(StrEnum):
    """Why a task is left alone although it is not waiting for anybody."""

    DEAD_LETTER = "dead_letter"
    TENANT_SUSPENDED = "tenant_suspended"
    RESTORE_HOLD = "restore_hold"
    SIBLING_IN_FLIGHT = "sibling_in_flight"
    NO_WORKER = "no_worker"
    CASE_OPEN = "case_open"
