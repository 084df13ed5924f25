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

PARKED: dict[str, Text] = {
    Parked.DEAD_LETTER: _("Parked: retries are used up"),
    Parked.TENANT_SUSPENDED: _("Parked: the tenant is suspended"),
    Parked.RESTORE_HOLD: _("Parked: held after a restore"),
    Parked.CASE_OPEN: _("Parked: a case about its payment or order is open"),
    Parked.SIBLING_IN_FLIGHT: _("Parked: another refund of this payment is under way"),
    Parked.NO_WORKER: _("Parked: no worker serves this version"),
}


def look(table: dict[str, Look], value: str) -> Look:
    """A value that this release does not know is shown as it is rather than breaking the page."""
    return table.get(value) or Look(value, "doubt")
