"""What happens next to a task, when, and who must act: the box under its story."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.models import OPEN, Approval
from runtime_app.console import story
from runtime_app.models import Case, Operation, Task
from runtime_app.states import OperationState, Parked, Status


@dataclass(frozen=True, slots=True)
class Outlook:
    what: str
    who: str = ""
    when: datetime | None = None
    when_label: str = ""
    tone: str = ""
    over: bool = False
    case: Case | None = None  # where a person can act on it


def outlook(
    task: Task, operation: Operation | None, approval: Approval | None, case: Case | None = None, *, asks: bool = False
) -> Outlook:
    """`operation` is the task's newest, `approval` its newest, `case` the most urgent open one that may be seen;
    `asks`: one is open, whoever may see it."""
    return replace(_outlook(task, operation, approval, asks), case=case)


def _outlook(task: Task, operation: Operation | None, approval: Approval | None, asks: bool) -> Outlook:
    if task.parked_reason:
        return _parked(task)
    match task.status:
        case Status.QUEUED:
            return _queued(task)
        case Status.WAITING_INPUT:
            return _waiting_input(task)
        case Status.WAITING_APPROVAL:
            return _waiting_approval(task, approval)
        case Status.READY:
            return _ready(task)
        case Status.EXECUTING:
            return Outlook(_("The provider has the request, and its answer is being waited for."), _nobody())
        case Status.RECONCILING:
            return _reconciling(task, operation)
    return _over(task, operation, asks)


def _nobody() -> str:
    return _("Nobody; it goes on by itself")


def _queued(task: Task) -> Outlook:
    if task.last_error:
        text = _("It could not go on and is tried again by itself: %(why)s.") % {"why": task.last_error.rstrip(".")}
        return Outlook(text, _nobody(), task.due_at, _("Next try"), "doubt")
    return Outlook(_("A worker takes it up, reads the order and judges the request."), _nobody())


def _waiting_input(task: Task) -> Outlook:
    who = _("The requester, or support")
    if task.requester:
        who = _("%(person)s, or support") % {"person": task.requester.shown_name}
    what = _("It goes on as soon as somebody gives what is missing. Without an answer it is cancelled; no money moves.")
    return Outlook(what, who, task.due_at, _("Given up at"))


def _waiting_approval(task: Task, approval: Approval | None) -> Outlook:
    if approval is None or approval.state != OPEN:
        return Outlook(_("It waits for approvers."))
    given = sum(1 for d in approval.decisions.all() if d.verdict == "approve")
    left = max(1, approval.quorum - given)
    what = ngettext(
        "It goes on as soon as %(n)s approver agrees. Without a decision it is refused, and no money moves.",
        "It goes on as soon as %(n)s approvers agree. Without a decision it is refused, and no money moves.", left,
    ) % {"n": left}
    tenant = task.tenant.name
    who = (
        _("An approver of %(tenant)s other than %(person)s, who asked for it")
        % {"tenant": tenant, "person": task.requester.shown_name}
        if task.requester else _("An approver of %(tenant)s") % {"tenant": tenant}
    )
    return Outlook(what, who, approval.deadline_at, _("Decide before"))


def _ready(task: Task) -> Outlook:
    if task.last_error:
        why = task.last_error.rstrip(".")
        text = _("Nothing was sent. The same request is tried again by itself: %(why)s.") % {"why": why}
        return Outlook(text, _nobody(), task.due_at, _("Next try"), "doubt")
    return Outlook(_("A worker reads order, facts and approval once more, and then sends the request once."), _nobody())


def _reconciling(task: Task, operation: Operation | None) -> Outlook:
    case = operation.case_class if operation else task.attention
    if case:
        text = _("A person must look at this: %(case)s") % {"case": story.CASES.get(case, case)}
        return Outlook(text, _("An operator"), operation.next_check_at if operation else None, _("Next look"), "doubt")
    when = operation.next_check_at if operation else task.due_at
    if operation is not None and operation.state == OperationState.PENDING:
        text = _("The provider has accepted the refund, and the money has not landed yet. We go on asking it.")
        return Outlook(text, _("Nobody; waiting for the provider"), when, _("Next look"))
    text = _(
        "It is not known whether the money moved. We go on asking the provider, by our own reference."
        " Nothing new is sent until it is proved that the first request did nothing."
    )
    if task.cancel_wished_at:
        text += " " + _("If that is proved, the request is cancelled, as was wished.")
    return Outlook(text, _("Nobody; an operator is called if it stays unknown"), when, _("Next look"), "doubt")


def _parked(task: Task) -> Outlook:
    operator = _("An operator")
    match task.parked_reason:
        case Parked.SIBLING_IN_FLIGHT:
            what = _("Another refund of this payment is under way. This one follows by itself when that is resolved.")
            return Outlook(what, _nobody())
        case Parked.CASE_OPEN:
            what = _("A case about its payment or its order is open. It goes on by itself when that is closed.")
            return Outlook(what, operator, tone="doubt")
        case Parked.DEAD_LETTER:
            why = f" {task.last_error}" if task.last_error else ""
            return Outlook(_("It was tried as often as it may be, and stopped.") + why, operator, tone="doubt")
        case Parked.TENANT_SUSPENDED:
            what = _("The tenant is suspended; it goes on when that is lifted.")
            return Outlook(what, _("The platform"), tone="doubt")
        case Parked.RESTORE_HOLD:
            return Outlook(_("It is held after a restore, until an operator releases it."), operator, tone="doubt")
    return Outlook(_("No worker serves this version; it goes on when one does."), operator, tone="doubt")


def _over(task: Task, operation: Operation | None, asks: bool) -> Outlook:
    if task.attention and asks:
        text = _("It ended, and then something else became known: %(case)s") % {
            "case": story.CASES.get(task.attention, task.attention)}
        return Outlook(text, _("An operator"), tone="doubt", over=True)
    return _turned(task, operation) or _as_ended(task, operation)


def _turned(task: Task, operation: Operation | None) -> Outlook | None:
    """What the money did otherwise than the end says; nobody is asked about it any more."""
    if operation is not None and operation.state == OperationState.RETURNED:
        back = _("The provider made the refund, and the money came back afterwards: the customer does not have it.")
        return Outlook(back, tone="crossed", over=True)
    if operation is not None and operation.state == OperationState.SUCCEEDED and task.status != Status.COMPLETED:
        late = _("It ended without a refund, and the provider made it all the same: the money moved.")
        return Outlook(late, tone="doubt", over=True)
    if task.attention:
        text = _("It is over. What people have looked at and decided on: %(case)s") % {
            "case": story.CASES.get(task.attention, task.attention)}
        return Outlook(text, over=True)
    return None


def _as_ended(task: Task, operation: Operation | None) -> Outlook:
    match task.status:
        case Status.COMPLETED:
            landed = _("The provider has confirmed the refund. When the customer sees the money is up to their bank.")
            return Outlook(landed if operation else _("It is done."), tone="done", over=True)
        case Status.REJECTED:
            what = _("It was refused. No money moved, and none will for this request.")
        case Status.CANCELLED:
            what = _("It was cancelled. No money moved, and none will for this request.")
        case _other:
            what = _("It could not be done. No money moved, and none will for this request; it may be asked for anew.")
    return Outlook(what, tone="crossed", over=True)
