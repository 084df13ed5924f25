"""A task's events as a story: the table of sentences, one entry a type of event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Text = str | Promise
_PLACE = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True, slots=True)
class Telling:
    """How an event is told: the state's shape it shows, and the first of its sentences whose words are all known."""

    shape: str
    sentences: tuple[Text, ...]

    def sentence(self, words: Mapping[str, str]) -> str:
        for text in self.sentences:
            plain = str(text)
            if all(words.get(name) for name in _PLACE.findall(plain)):
                return plain % words
        last = str(self.sentences[-1])
        return last % {name: words.get(name) or "—" for name in _PLACE.findall(last)}


def _told(shape: str, *sentences: Text) -> Telling:
    return Telling(shape, sentences)


STORY: dict[str, Telling] = {
    "task.opened": _told(
        "moving",
        _("%(who)s asked for a refund of %(amount)s on order %(order)s."),
        _("%(who)s asked for a refund on order %(order)s, without saying how much."),
        _("%(who)s asked for the task."),
    ),
    "task.waiting_input": _told(
        "waiting", _("Something is missing before it can be judged: %(asks)s."), _("Something is missing, so it waits.")
    ),
    "task.input_given": _told(
        "moving", _("%(who)s gave what was missing: %(given)s."), _("%(who)s gave what was missing.")
    ),
    "task.amended": _told(
        "moving",
        _("%(who)s changed the request to %(amount)s; it is judged anew."),
        _("%(who)s changed the request; it is judged anew."),
    ),
    "task.ready": _told(
        "moving",
        _("No person had to agree: it is at or under the threshold of %(threshold)s."),
        _("Everything that must agree has agreed."),
    ),
    "task.rejected": _told("crossed", _("The request was rejected: %(why)s."), _("The request was rejected.")),
    "task.failed": _told("crossed", _("It cannot be done: %(why)s"), _("It cannot be done.")),
    "task.completed": _told("done", _("It is completed, and proved.")),
    "task.cancelled": _told(
        "crossed", _("%(person)s cancelled it: %(why)s."), _("It was cancelled: %(why)s."), _("It was cancelled.")
    ),
    "task.judged_anew": _told("moving", _("It is judged anew: %(why)s"), _("It is judged anew.")),
    "task.postponed": _told("waiting", _("It could not go on and is tried again by itself: %(why)s.")),
    "task.parked": _told("waiting", _("It was parked: %(parked)s."), _("It was parked.")),
    "task.unparked": _told("moving", _("%(person)s let it go on."), _("What had parked it is resolved; it goes on.")),
    "task.cancel_wished": _told(
        "doubt",
        _("%(who)s wished to cancel. It had been handed over already, so the wish is kept until the truth is known."),
    ),
    "task.step_done": _told("note", _("Step %(step)s was done."), _("A step was done.")),
    "order.read": _told(
        "note",
        _("The order was read from the order system, at version %(version)s."),
        _("The order was read from the order system."),
    ),
    "order.refund_recorded": _told("note", _("The order system was told of the refund.")),
    "approval.requested": _told(
        "waiting",
        _("It is over the threshold of %(threshold)s, so approvers were asked."),
        _("Approvers were asked, %(always)s."),
        _("Approvers were asked to decide."),
    ),
    "approval.granted": _told("done", _("%(who)s approved it.")),
    "approval.rejected": _told("crossed", _("%(who)s rejected it.")),
    "approval.input_asked": _told("waiting", _("%(who)s asked for more before deciding.")),
    "approval.superseded": _told(
        "crossed",
        _("What was agreed on no longer counts: %(why)s Changed: %(changed)s."),
        _("What was agreed on no longer counts: %(why)s"),
        _("What was agreed on no longer counts."),
    ),
    "approval.expired": _told("crossed", _("Nobody decided in time, so the system refused it.")),
    "approval.cancelled": _told("crossed", _("The question to the approvers was withdrawn.")),
    "approval.claimed": _told("note", _("%(who)s took the decision in hand.")),
    "approval.released": _told(
        "note",
        _("The decision was taken out of the hand of %(from)s: %(why)s"),
        _("%(who)s gave the decision out of hand."),
    ),
    "approval.handed_over": _told("note", _("%(who)s handed the decision over to %(to)s.")),
    "approval.commented": _told("note", _("%(who)s wrote: %(text)s"), _("%(who)s wrote a comment.")),
    "approval.vote_withdrawn": _told("waiting", _("%(who)s took the agreement back.")),
    "approval.reminded": _told("note", _("Those who may still decide were reminded.")),
    "approval.escalated": _told("waiting", _("The deadline is near, so more people may decide now.")),
    "hold.taken": _told(
        "note",
        _("%(amount)s was reserved from what may still be refunded of payment %(payment)s."),
        _("The amount was reserved."),
    ),
    "hold.released": _told("note", _("The reserved amount is free again.")),
    "hold.consumed": _told("note", _("The reserved amount counts as refunded.")),
    "operation.submitted": _told(
        "moving",
        _("The request to refund %(amount)s was frozen and handed over for sending to the provider."),
        _("The request was frozen and handed over for sending to the provider."),
    ),
    "operation.not_sent": _told(
        "waiting", _("It is proved that the provider did nothing (%(why)s); the same request goes on.")
    ),
    "operation.unknown": _told(
        "doubt",
        _("It is not proved that the provider did what was asked: %(differs)s. Nothing new is sent until it is."),
        _("It is not known whether the provider did it: %(cause)s. Nothing new is sent until that is proved."),
        _("It is not known whether the provider did it. Nothing new is sent until that is proved."),
    ),
    "operation.pending": _told("moving", _("The provider has accepted it. The money has not landed yet.")),
    "operation.succeeded": _told(
        "done",
        _("The provider did it: %(amount)s went back, as its refund %(provider_ref)s."),
        _("The provider did it."),
    ),
    "operation.declined": _told("crossed", _("The provider refused it: %(code)s."), _("The provider refused it.")),
    "operation.not_executed": _told("crossed", _("It is settled that the provider did not do it.")),
    "operation.checked": _told(
        "doubt",
        _("What the provider answered to the repeated request was judged: %(judged)s."),
        _("The provider was asked what happened: %(finding)s."),
        _("The provider was asked what happened."),
    ),
    "operation.resubmitted_same_key": _told(
        "doubt", _("The same frozen request was sent again under the same key, so that it can count only once.")
    ),
    "operation.resend_answered": _told(
        "doubt",
        _("The provider answered the repeated request: %(finding)s."),
        _("The provider answered the repeated request."),
    ),
    "operation.cancel_submitted": _told("doubt", _("The provider was asked to cancel it.")),
    "cancel.too_late": _told("done", _("Cancelling was wished for, but the refund had already happened.")),
    "operation.returned": _told("crossed", _("The money came back afterwards: %(code)s."), _("The money came back.")),
    "operation.excess_returned": _told(
        "note",
        _("Of what had been executed more than once, %(amount)s came back."),
        _("Of what had been executed more than once, a part came back."),
    ),
    "notice.received": _told("note", _("The provider told us that something changed, so it is asked what.")),
    "statement.line_seen": _told("note", _("A statement shows a booking of it, so the provider is asked.")),
    "case.opened": _told("doubt", _("A person must look at this: %(case)s"), _("A person must look at this.")),
    "case.answered": _told("note", _("What was asked for in a case has been done: %(finding)s."),
                           _("What was asked for in a case has been done.")),
    "case.decided": _told("note", _("%(who)s decided in a case: %(why)s"), _("%(who)s decided in a case.")),
    "case.closed": _told("done", _("%(who)s closed a case: %(why)s"), _("A case was closed.")),
}

# What is said of a refund that makes good an earlier one, at any amount.
ALWAYS = _("as for everything that makes good an earlier refund")

UNKNOWN = _told("note", _("Something was recorded that this page has no words for."))

FINDINGS: dict[str, Text] = {
    "found_succeeded": _("it has done it"),
    "succeeded": _("it has done it"),
    "pending": _("it has accepted it, and the money has not landed yet"),
    "found_pending": _("it has accepted it, and the money has not landed yet"),
    "found_failed": _("it tried and failed"),
    "found_mismatch": _("it shows a refund that differs from what was asked"),
    "found_duplicate": _("it shows more than one refund for this request"),
    "lookalikes": _("it shows a similar refund that does not carry our mark; that proves nothing"),
    "absent": _("it shows no such refund; that alone proves nothing yet"),
    "inconclusive": _("its answer was not usable"),
    "no_lookup": _("it cannot be asked what happened"),
    "external_refund": _("it shows a refund that nobody asked for here"),
    "does_not_add_up": _("its refunds do not add up to its own total"),
    "other_mode": _("it belongs to the other mode, test or live"),
    "says_nothing": _("something changed"),
    "refused": _("it could not be read, so nothing of it counts"),
    "complete": _("it is the whole day"),
    "incomplete": _("it is not the whole day"),
    "declared_not_executed": _("the provider never executed it"),
    "recorded_as_found": _("what the provider did is what happened"),
    "booked": _("a statement shows that it was booked"),
    "came_back": _("a statement shows that it came back"),
    "resend_accepted": _("it took it"),
    "resend_burned": _("it repeats a stored error under this key, so the key is of no more use"),
    "resend_in_use": _("it is still busy or asks to wait"),
    "resend_conflict": _("it says that this key belongs to another request"),
    "resend_unknown": _("no usable answer"),
}

CASES: dict[str, Text] = {
    "AMOUNT_MISMATCH": _("the provider's refund has another amount than was asked for."),
    "CURRENCY_MISMATCH": _("the provider's refund is in another currency than was asked for."),
    "PARENT_MISMATCH": _("the provider refunded another payment than was asked for."),
    "EXTERNAL_REFUND": _("the provider shows a refund of this payment that nobody asked for here."),
    "BALANCE_DISAGREES": _("the order system's, the provider's and our figures of this payment differ."),
    "MISSING_AT_PROVIDER": _("no statement shows a refund that counts as done here."),
    "MISSING_HERE": _("a statement shows a booking that nobody here knows."),
    "AMOUNT_OVER": _("a statement shows more than was asked for."),
    "AMOUNT_UNDER": _("a statement shows less than was asked for."),
    "CURRENCY": _("a statement shows it in another currency."),
    "PARENT": _("a statement shows it on another payment."),
    "ACCOUNT_OR_MODE": _("it belongs to another account, or to the other mode, test or live."),
    "STATUS_CONFLICT": _("a statement contradicts the outcome that is recorded here."),
    "DISPUTED": _("the customer's bank disputes the payment."),
    "DUPLICATE_EXECUTION": _("the provider shows more than one refund for one request."),
    "LOOKALIKES": _("the provider shows a similar refund without our mark; somebody must say whether it is this one."),
    "KEY_CONFLICT": _("the provider says that our key was used for another request."),
    "ABSENT_FINAL": _("the provider has shown no such refund for so long that somebody must declare it not executed."),
    "LOOKUP_UNAVAILABLE": _("the provider could not be asked for too long."),
    "STALE_PENDING": _("the provider has kept it pending longer than it should."),
    "LATE_EXECUTION": _("the provider did it after it had counted as not done."),
    "RETURNED": _("the money came back after the refund had succeeded."),
}

CAUSES: dict[str, Text] = {
    "no_answer": _("its answer was lost"),
    "answer": _("its answer was not usable"),
    "resend": _("it refuses the repeated request, which proves nothing"),
}

FACTS: dict[str, Text] = {
    "tenant": _("tenant"),
    "workflow": _("workflow"),
    "version": _("workflow version"),
    "order_ref": _("order"),
    "payment_ref": _("payment"),
    "captured_minor": _("captured"),
    "external_minor": _("refunded outside of us"),
    "amount_minor": _("amount"),
    "currency": _("currency"),
    "on_behalf_of": _("the person behind it"),
    "answer": _("an answer to the approver"),
    "destination": _("destination"),
    "reason": _("reason"),
    "policy_version": _("rule's version"),
}
