"""What each state is called on a page, and the shape it wears there: one small set for every page."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runtime_app.states import OperationState, Parked, Status

Text = str | Promise


class Look(NamedTuple):
    """`shape` is also the colour: waiting (hollow), moving (half), doubt (striped), done (filled), crossed."""

    word: Text
    shape: str


STATUS: dict[str, Look] = {
    Status.QUEUED: Look(_("Queued"), "moving"),
    Status.WAITING_INPUT: Look(_("Waiting for input"), "waiting"),
    Status.WAITING_APPROVAL: Look(_("Waiting for approval"), "waiting"),
    Status.READY: Look(_("Ready"), "moving"),
    Status.EXECUTING: Look(_("Executing"), "moving"),
    Status.RECONCILING: Look(_("Finding out"), "doubt"),
    Status.COMPLETED: Look(_("Completed"), "done"),
    Status.REJECTED: Look(_("Rejected"), "crossed"),
    Status.FAILED: Look(_("Failed"), "crossed"),
    Status.CANCELLED: Look(_("Cancelled"), "crossed"),
}

OPERATION: dict[str, Look] = {
    OperationState.PREPARED: Look(_("Prepared, not sent"), "waiting"),
    OperationState.SUBMITTING: Look(_("Being sent"), "moving"),
    OperationState.SUCCEEDED: Look(_("Money moved"), "done"),
    OperationState.PENDING: Look(_("Accepted, not settled"), "moving"),
    OperationState.FAILED: Look(_("Declined"), "crossed"),
    OperationState.UNKNOWN: Look(_("Outcome unknown"), "doubt"),
    OperationState.NOT_EXECUTED: Look(_("Not executed"), "crossed"),
    OperationState.RETURNED: Look(_("Came back"), "crossed"),
}

APPROVAL: dict[str, Look] = {
    "open": Look(_("Waiting for a decision"), "waiting"),
    "approved": Look(_("Approved"), "done"),
    "rejected": Look(_("Rejected"), "crossed"),
    "input_asked": Look(_("More was asked for"), "waiting"),
    "expired": Look(_("Expired"), "crossed"),
    "cancelled": Look(_("Cancelled"), "crossed"),
    "superseded": Look(_("Superseded"), "crossed"),
}

DECISION: dict[str, Look] = {
    "approve": Look(_("Approved"), "done"),
    "reject": Look(_("Rejected"), "crossed"),
    "ask_input": Look(_("Asked for input"), "waiting"),
}

POLICY: dict[str, Look] = {
    "proposed": Look(_("Proposed"), "waiting"),
    "in_force": Look(_("In force"), "done"),
    "replaced": Look(_("Replaced"), "note"),
    "refused": Look(_("Refused"), "crossed"),
    "withdrawn": Look(_("Taken back"), "crossed"),
}

DELIVERY: dict[str, Look] = {
    "waiting": Look(_("Waiting to be sent"), "waiting"),
    "sent": Look(_("Sent"), "done"),
    "dropped": Look(_("Not needed any more"), "note"),
    "dead": Look(_("Given up"), "crossed"),
}

# What a person or an endpoint is told of an approval.
TOLD: dict[str, Text] = {
    "asked": _("asked to decide"),
    "reminder": _("reminded"),
    "escalated": _("asked since it was escalated"),
    "handed_over": _("told that it was handed over"),
    "input_asked": _("told what is missing"),
    "decided": _("told of the decision"),
    "superseded": _("told that it was asked anew"),
    "expired": _("told that it has expired"),
    "cancelled": _("told that it was withdrawn"),
}

# What people did about an approval; the person's name stands before, and another person's may stand behind.
NOTE: dict[str, Text] = {
    "claimed": _("took it in hand"),
    "released": _("gave it out of hand"),
    "handed_over": _("handed it over to"),
    "vote_withdrawn": _("took the agreement back"),
    "escalated": _("asked more people, since the deadline is near"),
}

PARKED: dict[str, Text] = {
    Parked.DEAD_LETTER: _("Parked: retries are used up"),
    Parked.TENANT_SUSPENDED: _("Parked: the tenant is suspended"),
    Parked.RESTORE_HOLD: _("Parked: held after a restore"),
    Parked.CASE_OPEN: _("Parked: a case about its payment or order is open"),
    Parked.SIBLING_IN_FLIGHT: _("Parked: another refund of this payment is under way"),
    Parked.NO_WORKER: _("Parked: no worker serves this version"),
}

# Severity has shapes of its own: it says how grave a thing is, not how far it has come.
SEVERITY: dict[str, Look] = {
    "critical": Look(_("Critical"), "critical"),
    "high": Look(_("High"), "high"),
    "normal": Look(_("Normal"), "normal"),
}

CASE_STATE: dict[str, Look] = {
    "open": Look(_("Open"), "doubt"),
    "snoozed": Look(_("Snoozed"), "waiting"),
    "closed": Look(_("Closed"), "done"),
}

# What a class of case is called in a list; `story.CASES` says the same as a sentence.
CASE: dict[str, Text] = {
    "STALE_PENDING": _("Pending for too long"),
    "AMOUNT_MISMATCH": _("Another amount"),
    "CURRENCY_MISMATCH": _("Another currency"),
    "PARENT_MISMATCH": _("Another payment"),
    "LOOKALIKES": _("A similar refund without our mark"),
    "KEY_CONFLICT": _("Key used for another request"),
    "ABSENT_FINAL": _("Absent for good"),
    "LOOKUP_UNAVAILABLE": _("Provider cannot be asked"),
    "DUPLICATE_EXECUTION": _("Executed more than once"),
    "LATE_EXECUTION": _("Executed late"),
    "RETURNED": _("Money came back"),
    "EXTERNAL_REFUND": _("Refunded outside of us"),
    "BALANCE_DISAGREES": _("Figures disagree"),
    "MISSING_AT_PROVIDER": _("On no statement"),
    "MISSING_HERE": _("Booking nobody knows"),
    "AMOUNT_OVER": _("Statement shows more"),
    "AMOUNT_UNDER": _("Statement shows less"),
    "CURRENCY": _("Statement in another currency"),
    "PARENT": _("Statement on another payment"),
    "ACCOUNT_OR_MODE": _("Other account or mode"),
    "STATUS_CONFLICT": _("Statement contradicts us"),
    "DISPUTED": _("Payment disputed"),
}

# What a line of a statement, or an operation without one, comes to; the other classes are those of cases.
LINE: dict[str, Look] = {
    "": Look(_("Not compared yet"), "waiting"),
    "MATCHED": Look(_("Matched"), "done"),
    "FEE_OR_FX": Look(_("Matched, with a fee or exchange"), "done"),
    "OTHER": Look(_("No refund"), "note"),
    "TIMING": Look(_("Not due yet"), "waiting"),
    "IN_DOUBT": Look(_("Outcome not proved"), "doubt"),
    "RESOLVES_UNKNOWN": Look(_("Shows one that is unknown here"), "moving"),
    "DUPLICATE_LINE": Look(_("Told again"), "note"),
}

# What the last look or answer showed, as a list tells it.
RESULT: dict[str, Text] = {
    "found_succeeded": _("done"),
    "succeeded": _("done"),
    "found_pending": _("accepted, not settled"),
    "pending": _("accepted, not settled"),
    "found_failed": _("failed there"),
    "found_mismatch": _("differs from the request"),
    "found_duplicate": _("more than one"),
    "lookalikes": _("similar, without our mark"),
    "absent": _("absent"),
    "inconclusive": _("not conclusive"),
    "no_lookup": _("cannot be asked"),
    "resend_accepted": _("repeat was taken"),
    "resend_burned": _("key repeats an error"),
    "resend_in_use": _("busy"),
    "resend_conflict": _("key belongs to another request"),
    "resend_unknown": _("no usable answer"),
    "no_answer": _("answer lost"),
    "answer": _("answer not usable"),
    "resend": _("repeat refused"),
    "duplicate": _("known there already"),
}


def line(class_name: str) -> Look:
    return LINE.get(class_name) or Look(CASE.get(class_name, class_name), "doubt")


class Act(NamedTuple):
    """An action on a case: how it is headed, and what its button does."""

    title: Text
    button: Text
    done: Text


ACTS: dict[str, Act] = {
    "query_now": Act(
        _("Ask the provider now"), _("Have the provider asked now"),
        _("The provider is asked as soon as a worker is free; what it says appears here."),
    ),
    "attach": Act(
        _("Name the provider's refund"), _("Have this refund looked at"),
        _("The provider is asked for this refund; it counts only if it fits."),
    ),
    "record_as_found": Act(_("Record what was found"), _("Record it as what happened"), _("Your word is recorded.")),
    "acknowledge": Act(
        _("Acknowledge"), _("Say that it is known, and close the case"),
        _("It is acknowledged, and the case is closed."),
    ),
    "declare_not_executed": Act(
        _("Declare not executed"), _("Declare that it was never executed"), _("Your declaration is recorded."),
    ),
    "cancel_at_provider": Act(
        _("Cancel at the provider"), _("Have the provider asked to cancel it"),
        _("The wish is recorded; the provider is asked to cancel it. What really happened is found out after that."),
    ),
    "start_compensation": Act(
        _("Ask for a new refund"), _("Ask for this refund"),
        _("The new refund is asked for. This is its own task, and people must approve it."),
    ),
    "close": Act(_("Close the case"), _("Close this case"), _("The case is closed.")),
    "assign": Act(_("Give it to somebody"), _("Give it to this person"), _("The case has a new owner.")),
    "snooze": Act(_("Put it off"), _("Put it off until this day"), _("The case is put off until that day.")),
    "comment": Act(_("Write something down"), _("Write it down"), _("It is written down.")),
}


def look(table: dict[str, Look], value: str) -> Look:
    """A value that this release does not know is shown as it is rather than breaking the page."""
    return table.get(value) or Look(value, "doubt")
