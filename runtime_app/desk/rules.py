"""The rules that actions are made of: each says why not, in one sentence, or nothing. Pure: values in, a value out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from runtime_app.desk import outcomes
from runtime_app.desk.situation import Situation
from runtime_app.reconciliation.classes import BY_PROOF
from runtime_app.states import OperationState, Status


@dataclass(frozen=True, slots=True)
class Who:
    """A person as the rules know one: `works` says that the person may work cases of this tenant."""

    id: int
    works: bool


@dataclass(frozen=True, slots=True)
class Why:
    """Why not. `opens_at` is the time it speaks of; `personal` says that somebody else may do it."""

    sentence: str
    opens_at: datetime | None = None
    personal: bool = False


Rule = Callable[[Situation, Who], Why | None]
ASK_AGAIN = timedelta(minutes=10)  # an answer that has not come by then is not waited for
_ABSENT = frozenset({"absent", "lookalikes"})


def works_here(s: Situation, who: Who) -> Why | None:
    return None if who.works else Why("You may see cases here, but not work on them.", personal=True)


def is_open(s: Situation, who: Who) -> Why | None:
    return None if s.open else Why("This case is closed.")


def no_party(s: Situation, who: Who) -> Why | None:
    if who.id not in s.parties:
        return None
    return Why("You asked for this refund yourself; somebody else must decide about it.", personal=True)


def of_class(says: str, *names: str) -> Rule:
    """`says` what these classes are about, for whoever has a case of another."""

    def rule(s: Situation, who: Who) -> Why | None:
        if s.case.class_name in names:
            return None
        return Why(f"This is only for {says}.")

    return rule


def of_doubt(s: Situation, who: Who) -> Why | None:
    """The case is about an outcome that is not proved, and its task is finding out."""
    if s.case.class_name not in BY_PROOF or s.operation is None:
        return Why("This case is not about a refund whose outcome is unknown.")
    return reconciling(s, who)


def reconciling(s: Situation, who: Who) -> Why | None:
    if s.operation is None:
        return Why("This case is not about a refund of ours.")
    if not s.in_doubt:
        return Why("The outcome of the refund is proved already.")
    return None if s.reconciling else Why("The request is just being sent; its answer comes first.")


def can_be_asked(s: Situation, who: Who) -> Why | None:
    if s.in_doubt:
        if not s.reconciling:
            return Why("The request is just being sent; its answer comes by itself.")
        return _runs(s)
    if s.operation is not None and s.operation.state == OperationState.PREPARED:
        return Why("Nothing was sent, so there is nothing to ask about.")
    if s.case.account is None or not s.case.payment_ref:
        return Why("The case names no payment of an account, so nobody can be asked.")
    return None


def _runs(s: Situation) -> Why | None:
    parked = s.task.parked_reason if s.task is not None else None
    return Why(f"The task is parked ({parked.replace('_', ' ')}), so no worker would take it.") if parked else None


def nobody_looks(s: Situation, who: Who) -> Why | None:
    """What was asked for by name is answered first: to ask again would take its place."""
    if s.ask is None or s.ask.data.get("what") == "query" or s.now - s.ask.at > ASK_AGAIN:
        return None
    return Why("What was asked for last is still being looked at.", opens_at=s.ask.at + ASK_AGAIN)


def unnamed(s: Situation, who: Who) -> Why | None:
    ref = s.operation.provider_ref if s.operation is not None else None
    return Why(f"The provider has named its refund already: {ref}.") if ref else None


def horizon_passed(s: Situation, who: Who) -> Why | None:
    if s.horizon_passed:
        return None
    return Why("The provider may still act on what was sent.", opens_at=s.horizon_at)


def nothing_found(s: Situation, who: Who) -> Why | None:
    if (why := unnamed(s, who)) is not None:
        return why
    if s.lines:
        return Why("A statement shows a booking of this refund.")
    if s.last_complete is None:
        return Why("No complete look at the provider has been made; ask the provider now.")
    if s.last_complete.finding not in _ABSENT:
        return Why("The last complete look at the provider shows a refund of ours.")
    return None


def looked_behind_horizon(s: Situation, who: Who) -> Why | None:
    """The look that the decision rests on is fresh, and was made when nothing could be on its way any more."""
    if s.last_complete is None or s.horizon_at is None or s.last_complete.observed_at < s.horizon_at:
        return Why("No complete look was made since the provider can no longer act on it; ask the provider now.")
    return fresh(s, who)


def fresh(s: Situation, who: Who) -> Why | None:
    old = "The last complete look is too old to decide on; ask the provider now."
    return None if s.fresh else Why(old, s.fresh_until)


def found_instead(s: Situation, who: Who) -> Why | None:
    if s.found is not None and s.last_complete is not None and s.last_complete.finding == "found_mismatch":
        return None
    return Why("The provider has to show one settled refund instead of what was asked for; ask the provider now.")


def not_the_first(s: Situation, who: Who) -> Why | None:
    first = s.declaration
    if first is None or first.person.pk != who.id:
        return None
    return Why("You have declared this already; a second person must declare the same.", personal=True)


def may_cancel_there(s: Situation, who: Who) -> Why | None:
    if s.cancel_wished:
        return Why("Cancelling is wished for already; the provider is asked as soon as it can do it.")
    if s.operation is None or s.operation.state != OperationState.PENDING:
        return Why("The provider has not accepted it as pending, so there is nothing to cancel there.")
    can = s.capabilities.can_cancel if s.capabilities is not None else frozenset()
    if not can:
        return Why("This provider cannot cancel a refund that it has accepted.")
    if any(one.status in can for one in s.shown):
        return None
    shown = ", ".join(sorted({one.status for one in s.shown})) or "not known"
    return Why(f"The provider can only cancel what is {' or '.join(sorted(can))}; this one is {shown}.")


def sent_back(s: Situation, who: Who) -> Why | None:
    if s.follow_up is not None:
        return Why(f"A follow-up was asked for already: {s.follow_up.id}.")
    if s.case.class_name == "RETURNED" and not s.open and s.case.outcome != "compensated":
        return Why("Another route was picked when this case was closed.")
    return None if s.sent_back else Why("Sending again makes sense only when it is proved that nothing arrived.")


def begun_by(s: Situation, who: Who) -> Why | None:
    """A follow-up that was decided on and not stored yet is finished by who began it."""
    begun = [e for e in s.entries if e.kind == "compensated"]
    if not begun or begun[-1].person_id == who.id:
        return None
    return Why(f"{begun[-1].actor.rpartition(':')[2]} has begun a follow-up and can finish it.", personal=True)


def task_ended(s: Situation, who: Who) -> Why | None:
    ended = s.task is not None and s.task.status in {Status.COMPLETED, Status.FAILED, Status.CANCELLED}
    return None if ended else Why("The task has not ended.")


def closes_by_word(s: Situation, who: Who) -> Why | None:
    if not outcomes.of(s.case.class_name):
        return Why("It is closed by acknowledging it.")
    if not s.in_doubt:
        return None
    if s.case.class_name in BY_PROOF:
        return Why("It closes by itself as soon as it is proved, or declared, what happened.")
    return Why("It is not closed before the outcome of the refund is proved.")
