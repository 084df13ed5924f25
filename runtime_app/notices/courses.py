"""Which way a notice goes, by what is known of the operation it names: plain values in, a course out."""

from __future__ import annotations

from enum import StrEnum

from runtime_app.states import UNRESOLVED, OperationState

_SAME: dict[OperationState, frozenset[str]] = {
    OperationState.SUCCEEDED: frozenset({"succeeded"}),
    OperationState.FAILED: frozenset({"failed", "canceled"}),
    OperationState.RETURNED: frozenset({"failed", "canceled"}),
}


def says_the_same(state: OperationState, says: str) -> bool:
    """Whether a notice with this word tells what is proved already."""
    return says in _SAME.get(state, ())


class Course(StrEnum):
    WAKE = "wake"  # in doubt: its task looks at once
    HINT = "hint"  # proved, and it tells something else: it is looked at for a late truth
    NOTED = "noted"  # proved, and it tells the same of the same refund, as it does after each of our own
    WAIT = "wait"  # proved not sent, and about to be sent: somebody is ahead of us, or the proof was none
    NOBODY = "nobody"  # no operation of ours, or one that is not committed yet


def course(state: OperationState | None, says: str, *, same_refund: bool = True) -> Course:
    """`state` is the operation's, None when the notice names none that is known. `same_refund`: the notice is of the
    refund that we know, or does not say of which."""
    if state is None:
        return Course.NOBODY
    if state in UNRESOLVED:
        return Course.WAKE
    if state == OperationState.PREPARED:
        return Course.WAIT
    return Course.NOTED if same_refund and says_the_same(state, says) else Course.HINT
