"""What came of a notice, in words. `ignored` means that it tells nothing new; `received`, that somebody is asked."""

from __future__ import annotations

from datetime import datetime, timedelta

from runtime_app.notices.courses import says_the_same
from runtime_app.states import OperationState

ASKED = "received: the provider is asked what happened"
BUSY = "received: a worker has the task in hand; it is looked at again once that one is done"
NOT_YET = "received: nothing here is known by its references yet"
NOT_OURS = "received: it is of no operation of ours; what the provider shows of its payment is compared with ours"
NOT_SENT = "received: the operation it names was proved not to have been sent; its payment is looked at"
NO_REFUND = "ignored: it tells nothing of a refund"
NOBODY = "ignored: it names no operation of ours, and no payment"

_GRAIN = timedelta(seconds=1)  # providers tell whole seconds: what is within one may be either before or after
_STATE = {
    OperationState.SUCCEEDED: "done", OperationState.FAILED: "refused or failed",
    OperationState.NOT_EXECUTED: "not executed", OperationState.RETURNED: "returned",
}


def other_mode(live: bool) -> str:
    told, own = ("live", "test") if live else ("test", "live")
    return f"ignored: it is of {told} mode, and the account is of {own} mode"


def of_a_proved_outcome(
    state: OperationState, says: str, occurred_at: datetime | None, proved_at: datetime | None, *, looked: bool
) -> str:
    """The notice held against what is proved. It moves nothing by itself, whatever it says and however new it is."""
    known = _STATE[state]
    once_more = "; the provider is asked once more all the same" if looked else ""
    if says_the_same(state, says):
        return f"ignored: it says {says}, and it is proved already that it was {known}{once_more}"
    if _is_older(state, occurred_at, proved_at):
        word = f"says {says} and " if says else ""
        return f"ignored: it {word}is older than the proof that it was {known}{once_more}"
    if not looked:
        return f"ignored: it is known already that it was {known}"
    return f"received: it says {says or 'nothing'}, and it was proved that it was {known}; the provider is asked"


def _is_older(state: OperationState, occurred_at: datetime | None, proved_at: datetime | None) -> bool:
    """Whether the proof came after what it tells. That it was absent is no proof against a provider that knows it."""
    if occurred_at is None or proved_at is None or state == OperationState.NOT_EXECUTED:
        return False
    return proved_at - occurred_at > _GRAIN
