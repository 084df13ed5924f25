"""The decision table of reconciliation, as data: what was found, and what follows from it.

Plain values in, a verdict out; nothing here reads a clock, a database or a provider. The docs print these rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from runtime_app.states import OperationState


class Finding(StrEnum):
    """What a look-up or a same-key resend showed."""

    SUCCEEDED = "found_succeeded"
    PENDING = "found_pending"
    FAILED = "found_failed"
    MISMATCH = "found_mismatch"
    DUPLICATE = "found_duplicate"
    LOOKALIKES = "lookalikes"
    ABSENT = "absent"
    INCONCLUSIVE = "inconclusive"
    RESEND_ACCEPTED = "resend_accepted"
    RESEND_BURNED = "resend_burned"
    RESEND_IN_USE = "resend_in_use"
    RESEND_CONFLICT = "resend_conflict"
    RESEND_UNKNOWN = "resend_unknown"
    NO_LOOKUP = "no_lookup"


class Verdict(StrEnum):
    """What follows. Verdicts that open a case need a person; the task stays reconciling, marked."""

    COMPLETE = "complete"
    COMPLETE_TOO_LATE = "complete_too_late"
    WAIT_PENDING = "wait_pending"
    SEND_CANCEL = "send_cancel"
    DECLINED = "declined"
    NOT_EXECUTED = "not_executed"
    RESEND = "resend"
    LOOK_AGAIN = "look_again"
    WAIT = "wait"
    STOP_RESENDS = "stop_resends"
    CASE_STALE_PENDING = "case:STALE_PENDING"
    CASE_MISMATCH = "case:MISMATCH"
    CASE_DUPLICATE = "case:DUPLICATE_EXECUTION"
    CASE_LOOKALIKES = "case:LOOKALIKES"
    CASE_KEY_CONFLICT = "case:KEY_CONFLICT"
    CASE_ABSENT_FINAL = "case:ABSENT_FINAL"
    CASE_LOOKUP_UNAVAILABLE = "case:LOOKUP_UNAVAILABLE"
    CASE_LATE = "case:LATE_EXECUTION"
    CASE_LATE_ACCEPTED = "case:LATE_EXECUTION:accepted"
    CASE_RETURNED = "case:RETURNED"
    STANDS = "stands"


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known when the answer arrives. Every truth value is a fact somebody read, not a guess."""

    finding: Finding
    cancel_wished: bool = False
    aged: bool = False  # long enough after the first submit for an absence to mean something
    absent_counts: bool = False  # enough complete looks, long enough after the first submit
    horizon_passed: bool = False  # no request sent so far can still be acted on
    no_sender: bool = False  # the sender's lock is in hand: nobody else can still send
    may_resend: bool = False  # key window, replay promise, frozen body, resends left, facts and authority
    resend_ended: bool = False  # the key window has closed, or resends are disabled or used up
    pending_too_long: bool = False
    can_cancel: bool = False
    handover_passed: bool = False
    ended_as: OperationState | None = None  # the outcome that was proved before; None: not proved yet


F, V = Finding, Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """`who` acts on it: the runtime by itself, a person, two persons, or whoever the verdict's case is given to."""

    number: int
    finding: Finding
    when: str
    holds: Callable[[Situation], bool]
    verdict: Verdict
    who: str = "auto"


_NOTHING_MOVED = frozenset({OperationState.FAILED, OperationState.NOT_EXECUTED})


def _after_nothing(s: Situation) -> bool:
    return s.ended_as in _NOTHING_MOVED


def _after_success(s: Situation) -> bool:
    return s.ended_as == OperationState.SUCCEEDED


def _ended(s: Situation) -> bool:
    return s.ended_as is not None


ROWS: tuple[Row, ...] = (
    # An outcome that was proved before: what is found now is a late truth, or nothing new.
    Row(23, F.SUCCEEDED, "it had been refused, or proved absent", _after_nothing, V.CASE_LATE, "person"),
    Row(23, F.DUPLICATE, "it had been refused, or proved absent", _after_nothing, V.CASE_LATE, "person"),
    Row(23, F.MISMATCH, "it had been refused, or proved absent", _after_nothing, V.CASE_LATE, "person"),
    Row(23, F.PENDING, "it had been refused, or proved absent", _after_nothing, V.CASE_LATE_ACCEPTED, "person"),
    Row(24, F.FAILED, "it had succeeded", _after_success, V.CASE_RETURNED, "person"),
    Row(8, F.DUPLICATE, "it had succeeded", _after_success, V.CASE_DUPLICATE, "person"),
    *(Row(22, finding, "the outcome is proved already", _ended, V.STANDS) for finding in Finding),
    Row(1, F.SUCCEEDED, "no cancel wished", lambda s: not s.cancel_wished, V.COMPLETE),
    Row(2, F.SUCCEEDED, "cancel wished", lambda s: s.cancel_wished, V.COMPLETE_TOO_LATE),
    Row(5, F.PENDING, "longer than the method's time", lambda s: s.pending_too_long, V.CASE_STALE_PENDING,
        "person"),
    Row(4, F.PENDING, "cancel wished and the provider can cancel", lambda s: s.cancel_wished and s.can_cancel,
        V.SEND_CANCEL),
    Row(3, F.PENDING, "else", lambda s: True, V.WAIT_PENDING),
    Row(6, F.FAILED, "any", lambda s: True, V.DECLINED),
    Row(7, F.MISMATCH, "any", lambda s: True, V.CASE_MISMATCH, "person"),
    Row(8, F.DUPLICATE, "any", lambda s: True, V.CASE_DUPLICATE, "person"),
    Row(10, F.ABSENT, "a sender may still be alive, or too early or too few looks",
        lambda s: not s.no_sender or not s.absent_counts, V.WAIT),
    Row(16, F.ABSENT, "cancel wished, and the horizon has passed", lambda s: s.cancel_wished and s.horizon_passed,
        V.NOT_EXECUTED),
    Row(17, F.ABSENT, "cancel wished, before the horizon", lambda s: s.cancel_wished, V.WAIT),
    Row(11, F.ABSENT, "the same request may be sent again under the same key", lambda s: s.may_resend, V.RESEND),
    Row(18, F.ABSENT, "the horizon has passed and resends have ended", lambda s: s.horizon_passed and s.resend_ended,
        V.CASE_ABSENT_FINAL, "two persons"),
    Row(10, F.ABSENT, "else", lambda s: True, V.WAIT),
    Row(9, F.LOOKALIKES, "any", lambda s: True, V.CASE_LOOKALIKES, "person"),
    Row(12, F.RESEND_ACCEPTED, "any", lambda s: True, V.LOOK_AGAIN),
    Row(13, F.RESEND_BURNED, "any", lambda s: True, V.STOP_RESENDS),
    Row(14, F.RESEND_IN_USE, "any", lambda s: True, V.WAIT),
    Row(15, F.RESEND_CONFLICT, "any", lambda s: True, V.CASE_KEY_CONFLICT, "person"),
    Row(14, F.RESEND_UNKNOWN, "any", lambda s: True, V.WAIT),
    Row(20, F.INCONCLUSIVE, "after the handover", lambda s: s.handover_passed, V.CASE_LOOKUP_UNAVAILABLE,
        "person"),
    Row(19, F.INCONCLUSIVE, "before the handover", lambda s: True, V.WAIT),
    # A provider that cannot be asked: the same request again is the question, then a statement, then a person.
    Row(21, F.NO_LOOKUP, "a sender may still be alive, or it is too early", lambda s: not s.no_sender or not s.aged,
        V.WAIT),
    Row(21, F.NO_LOOKUP, "no cancel wished, and the same request may be sent again under the same key",
        lambda s: s.may_resend and not s.cancel_wished, V.RESEND),
    Row(21, F.NO_LOOKUP, "after the handover", lambda s: s.handover_passed, V.CASE_LOOKUP_UNAVAILABLE, "person"),
    Row(21, F.NO_LOOKUP, "else", lambda s: True, V.WAIT),
)


def decide(situation: Situation) -> Row:
    """The first row that holds; the table covers every finding."""
    return next(row for row in ROWS if row.finding == situation.finding and row.holds(situation))
