"""Which way a notice goes, by what is known of the operation it names: plain values in, a course out."""

from __future__ import annotations

from enum import StrEnum

from runtime_app.states import UNRESOLVED, OperationState


class Course(StrEnum):
    WAKE = "wake"  # in doubt: its task looks at once
    HINT = "hint"  # proved: it is looked at all the same, for a late truth
    WAIT = "wait"  # proved not sent, and about to be sent: somebody is ahead of us, or the proof was none
    NOBODY = "nobody"  # no operation of ours, or one that is not committed yet


def course(state: OperationState | None) -> Course:
    """`state` is the operation's, None when the notice names none that is known."""
    if state is None:
        return Course.NOBODY
    if state in UNRESOLVED:
        return Course.WAKE
    return Course.WAIT if state == OperationState.PREPARED else Course.HINT
