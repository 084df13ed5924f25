"""The decision table of reconciliation: row by row, and over every situation there can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import product
from typing import Any

import pytest

from runtime_app.reconciliation.table import ROWS, Finding, Situation, Verdict, decide
from runtime_app.states import OperationState

F, V = Finding, Verdict
TRUTHS = [field.name for field in fields(Situation) if field.type == "bool"]
ENDED = (OperationState.SUCCEEDED, OperationState.FAILED, OperationState.NOT_EXECUTED, OperationState.RETURNED)
ENDS = {V.COMPLETE, V.COMPLETE_TOO_LATE, V.DECLINED, V.NOT_EXECUTED}
RESEND_ANSWERS = {F.RESEND_ACCEPTED, F.RESEND_BURNED, F.RESEND_IN_USE, F.RESEND_CONFLICT, F.RESEND_UNKNOWN}
PROVED = {"no_sender": True, "absent_counts": True}  # what an absence needs before it means anything


def situations(finding: Finding, ended_as: OperationState | None = None) -> Iterator[Situation]:
    """Every situation with this finding, of an outcome in doubt or of one that was proved before."""
    for values in product((False, True), repeat=len(TRUTHS)):
        known: dict[str, Any] = dict(zip(TRUTHS, values, strict=True))
        yield Situation(finding, ended_as=ended_as, **known)


def everything() -> Iterator[Situation]:
    for finding in F:
        for ended_as in (None, *ENDED):
            yield from situations(finding, ended_as)


@pytest.mark.parametrize(("number", "finding", "known", "verdict"), [
    (1, F.SUCCEEDED, {}, V.COMPLETE),
    (2, F.SUCCEEDED, {"cancel_wished": True}, V.COMPLETE_TOO_LATE),
    (3, F.PENDING, {}, V.WAIT_PENDING),
    (3, F.PENDING, {"cancel_wished": True}, V.WAIT_PENDING),
    (4, F.PENDING, {"cancel_wished": True, "can_cancel": True}, V.SEND_CANCEL),
    (5, F.PENDING, {"pending_too_long": True}, V.CASE_STALE_PENDING),
    (5, F.PENDING, {"pending_too_long": True, "cancel_wished": True}, V.CASE_STALE_PENDING),
    (6, F.FAILED, {}, V.DECLINED),
    (6, F.FAILED, {"cancel_wished": True}, V.DECLINED),
    (7, F.MISMATCH, {}, V.CASE_MISMATCH),
    (8, F.DUPLICATE, {}, V.CASE_DUPLICATE),
    (9, F.LOOKALIKES, {}, V.CASE_LOOKALIKES),
    (10, F.ABSENT, {"no_sender": True}, V.WAIT),
    (10, F.ABSENT, {"absent_counts": True}, V.WAIT),
    (10, F.ABSENT, {"absent_counts": True, "cancel_wished": True, "horizon_passed": True}, V.WAIT),
    (10, F.ABSENT, {**PROVED, "horizon_passed": True}, V.WAIT),
    (11, F.ABSENT, {**PROVED, "may_resend": True}, V.RESEND),
    (12, F.RESEND_ACCEPTED, {}, V.LOOK_AGAIN),
    (13, F.RESEND_BURNED, {}, V.STOP_RESENDS),
    (14, F.RESEND_IN_USE, {}, V.WAIT),
    (14, F.RESEND_UNKNOWN, {}, V.WAIT),
    (15, F.RESEND_CONFLICT, {}, V.CASE_KEY_CONFLICT),
    (16, F.ABSENT, {**PROVED, "cancel_wished": True, "horizon_passed": True}, V.NOT_EXECUTED),
    (16, F.ABSENT, {**PROVED, "cancel_wished": True, "horizon_passed": True, "may_resend": True}, V.NOT_EXECUTED),
    (17, F.ABSENT, {**PROVED, "cancel_wished": True}, V.WAIT),
    (17, F.ABSENT, {**PROVED, "cancel_wished": True, "may_resend": True}, V.WAIT),
    (18, F.ABSENT, {**PROVED, "horizon_passed": True, "resend_ended": True}, V.CASE_ABSENT_FINAL),
    (19, F.INCONCLUSIVE, {}, V.WAIT),
    (20, F.INCONCLUSIVE, {"handover_passed": True}, V.CASE_LOOKUP_UNAVAILABLE),
    (21, F.NO_LOOKUP, {"no_sender": True}, V.WAIT),
    (21, F.NO_LOOKUP, {"aged": True, "may_resend": True}, V.WAIT),
    (21, F.NO_LOOKUP, {"no_sender": True, "aged": True, "may_resend": True}, V.RESEND),
    (21, F.NO_LOOKUP, {"no_sender": True, "aged": True, "may_resend": True, "cancel_wished": True}, V.WAIT),
    (21, F.NO_LOOKUP, {"no_sender": True, "aged": True, "handover_passed": True}, V.CASE_LOOKUP_UNAVAILABLE),
    (21, F.NO_LOOKUP, {"no_sender": True, "aged": True}, V.WAIT),
    (22, F.SUCCEEDED, {"ended_as": OperationState.SUCCEEDED}, V.STANDS),
    (22, F.ABSENT, {"ended_as": OperationState.SUCCEEDED}, V.STANDS),
    (22, F.PENDING, {"ended_as": OperationState.SUCCEEDED}, V.STANDS),
    (22, F.FAILED, {"ended_as": OperationState.FAILED}, V.STANDS),
    (22, F.SUCCEEDED, {"ended_as": OperationState.RETURNED}, V.STANDS),
    (23, F.SUCCEEDED, {"ended_as": OperationState.NOT_EXECUTED}, V.CASE_LATE),
    (23, F.SUCCEEDED, {"ended_as": OperationState.FAILED}, V.CASE_LATE),
    (23, F.MISMATCH, {"ended_as": OperationState.NOT_EXECUTED}, V.CASE_LATE),
    (23, F.DUPLICATE, {"ended_as": OperationState.NOT_EXECUTED}, V.CASE_LATE),
    (23, F.PENDING, {"ended_as": OperationState.NOT_EXECUTED}, V.CASE_LATE_ACCEPTED),
    (24, F.FAILED, {"ended_as": OperationState.SUCCEEDED}, V.CASE_RETURNED),
    (8, F.DUPLICATE, {"ended_as": OperationState.SUCCEEDED}, V.CASE_DUPLICATE),
])
def test_the_row_says(number: int, finding: Finding, known: dict[str, Any], verdict: Verdict) -> None:
    """M23, M24: rows 1 to 24, one by one. Of row 22 it is what stands; the notice itself is never a finding."""
    row = decide(Situation(finding, **known))
    assert (row.number, row.verdict) == (number, verdict)


def test_every_situation_has_a_row() -> None:
    assert all(decide(situation) in ROWS for situation in everything())


def test_every_row_and_every_verdict_is_reached_by_some_situation() -> None:
    reached = {id(decide(situation)) for situation in everything()}
    assert [row.number for row in ROWS if id(row) not in reached] == []
    assert {row.verdict for row in ROWS} == set(Verdict)
    assert {row.number for row in ROWS} == set(range(1, 25))


def test_a_row_speaks_of_its_own_finding_only() -> None:
    assert all(decide(situation).finding == situation.finding for situation in everything())


def test_only_a_look_that_found_something_or_a_proved_absence_ends_a_task() -> None:
    """P3: unknown stays unknown, however often and however long nobody answers."""
    may_end = {F.SUCCEEDED, F.FAILED, F.ABSENT}
    assert not any(decide(s).verdict in ENDS for finding in set(F) - may_end for s in situations(finding))


def test_an_absence_is_believed_only_with_the_lock_and_long_enough() -> None:
    """Rule 1: while somebody may still send, an absence means nothing and nothing is sent."""
    for situation in situations(F.ABSENT):
        verdict = decide(situation).verdict
        if not (situation.no_sender and situation.absent_counts):
            assert verdict == V.WAIT
        if verdict == V.NOT_EXECUTED:
            assert situation.cancel_wished and situation.horizon_passed
        if verdict == V.CASE_ABSENT_FINAL:
            assert situation.horizon_passed and situation.resend_ended and not situation.cancel_wished


def test_nothing_is_sent_again_but_on_rows_11_and_21() -> None:
    """I4: only what is absent, or cannot be asked for, is sent again; only where it is allowed and nobody else may
    still send, and never when a cancel is wished for or the outcome is proved."""
    for situation in everything():
        if decide(situation).verdict == V.RESEND:
            assert situation.finding in {F.ABSENT, F.NO_LOOKUP} and situation.may_resend and situation.no_sender
            assert not situation.cancel_wished and situation.ended_as is None


def test_a_proved_outcome_never_ends_a_task_again() -> None:
    """Rows 22 to 24: what is found afterwards is a case, or stands; the task keeps its end."""
    for situation in everything():
        if situation.ended_as is not None:
            verdict = decide(situation).verdict
            assert verdict == V.STANDS or verdict in {
                V.CASE_LATE, V.CASE_LATE_ACCEPTED, V.CASE_RETURNED, V.CASE_DUPLICATE}


def test_the_answer_to_a_resend_is_never_the_truth_by_itself() -> None:
    """Row 12: what a resend says is looked up before it counts."""
    verdicts = {decide(situation).verdict for finding in RESEND_ANSWERS for situation in situations(finding)}
    assert verdicts == {V.LOOK_AGAIN, V.STOP_RESENDS, V.WAIT, V.CASE_KEY_CONFLICT}


def test_a_wished_cancel_never_hides_that_it_was_done() -> None:
    for situation in situations(F.SUCCEEDED):
        assert decide(situation).verdict == (V.COMPLETE_TOO_LATE if situation.cancel_wished else V.COMPLETE)
