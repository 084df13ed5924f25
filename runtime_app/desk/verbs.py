"""What people do about a case. Each verb checks the right, what the person saw, and the rule, under the case's lock.

Raises NotFound (not there, or not yours to see), Forbidden (somebody else may), FieldErrors (what was given), or
Conflict (it is not as you saw it, or not allowed as it is); then nothing was recorded.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from runtime_app import access, watch
from runtime_app.chronicle import Say
from runtime_app.desk import outcomes
from runtime_app.desk.doing import Plan, closing, decision, do, reason_of, word_of
from runtime_app.desk.follow_up import start_compensation
from runtime_app.desk.noting import export_noted
from runtime_app.desk.reading import workers
from runtime_app.desk.seen import seen
from runtime_app.desk.situation import Situation
from runtime_app.desk.two_persons import declare_not_executed, record_as_found
from runtime_app.errors import FieldErrors
from runtime_app.ledger import looks
from runtime_app.models import Case, User
from runtime_app.states import OperationState
from runtime_app.texts import check_ref, check_text
from runtime_app.transitions import Transition

__all__ = [
    "acknowledge", "assign", "attach", "cancel_at_provider", "close", "comment", "declare_not_executed", "export_noted",
    "query_now", "record_as_found", "snooze", "start_compensation",
]
SNOOZE_MOST = 30  # days
_WAKE = Transition(keep_lease=True, wake=True, starts=None)
_HINTED = frozenset({OperationState.SUCCEEDED, OperationState.FAILED, OperationState.NOT_EXECUTED})


def query_now(person: User, case_id: object, *, revision: int, seen_sha256: str) -> Case:
    """Have the provider asked as soon as a worker is free; the answer appears in the case."""
    saw = seen(revision, seen_sha256, decides=True)

    def plan(s: Situation) -> Plan:
        asks = decision(s, person, "query_now", saw, "asked", {"what": "query"})
        return Plan(asks, _WAKE if s.in_doubt else None, rings=True)

    case = do(person, case_id, "query_now", saw, plan)
    _have_looked(case)
    return case


def _have_looked(case: Case) -> None:
    """What is not in doubt is looked at beside its task: the operation itself, or the payment as a whole."""
    operation = case.operation
    if operation is not None and operation.state in _HINTED:
        watch.hint(operation.id)
    elif (operation is None or operation.state == OperationState.RETURNED) and case.account is not None:
        looks.ask(case.tenant_id, case.account.ref, case.payment_ref, "a person asked for it")


def attach(person: User, case_id: object, *, revision: int, seen_sha256: str, ref: str) -> Case:
    """Name the provider's refund. A worker looks at it, and it counts only if it fits and is nobody else's."""
    saw = seen(revision, seen_sha256, decides=True)
    named = check_ref(ref, "ref")

    def plan(s: Situation) -> Plan:
        return Plan(decision(s, person, "attach", saw, "asked", {"what": "attach", "ref": named}), _WAKE, rings=True)

    return do(person, case_id, "attach", saw, plan)


def cancel_at_provider(person: User, case_id: object, *, revision: int, seen_sha256: str, reason: str) -> Case:
    """Record the wish to cancel; the worker asks the provider, and only a look proves what came of it."""
    saw = seen(revision, seen_sha256, decides=True)
    why = reason_of(reason)

    def plan(s: Situation) -> Plan:
        wish = Transition(
            events=(Say("task.cancel_wished", {"why": why}),), keep_lease=True, wake=True, starts=None,
            columns={"cancel_wished_at": s.now, "cancel_wished_by": access.actor(person), "cancel_reason": why},
        )
        asks = decision(s, person, "cancel_at_provider", saw, "asked", {"what": "cancel", "reason": why})
        return Plan(asks, wish, rings=True)

    return do(person, case_id, "cancel_at_provider", saw, plan)


def acknowledge(person: User, case_id: object, *, revision: int, seen_sha256: str, reason: str) -> Case:
    """It was made outside of us and is known now; what may still be refunded of the payment follows it."""
    saw = seen(revision, seen_sha256, decides=True)
    why = reason_of(reason)

    def plan(s: Situation) -> Plan:
        knows = decision(s, person, "acknowledge", saw, "acknowledged", {"reason": why}, close_as="acknowledged")
        return Plan(knows, closing(s, "acknowledged", why), rings=True)

    case = do(person, case_id, "acknowledge", saw, plan)
    if case.account is not None and case.payment_ref:
        looks.ask(case.tenant_id, case.account.ref, case.payment_ref, "a refund made outside of us was acknowledged")
    return case


def close(person: User, case_id: object, *, revision: int, seen_sha256: str, outcome: str, reason: str) -> Case:
    """Close it with a word of `outcomes.of` its class. What it stopped goes on."""
    saw = seen(revision, seen_sha256, decides=True)
    why = reason_of(reason)

    def plan(s: Situation) -> Plan:
        word = word_of(outcome, "outcome", outcomes.of(s.case.class_name))
        closes = decision(s, person, "close", saw, "closed", {"reason": why}, close_as=word)
        return Plan(closes, closing(s, word, why))

    return do(person, case_id, "close", saw, plan)


def assign(person: User, case_id: object, *, revision: int, seen_sha256: str, to: str | None) -> Case:
    """Give it to somebody who may work cases here and did not ask for the refund; None takes it from everybody."""
    saw = seen(revision, seen_sha256, decides=False)

    def plan(s: Situation) -> Plan:
        owner = None if to is None else _worker(s, to)
        gives = decision(s, person, "assign", saw, "assigned", {"to": to},
                         columns={"owner_id": owner.pk if owner else None})
        return Plan(gives)

    return do(person, case_id, "assign", saw, plan)


def _worker(s: Situation, username: object) -> User:
    for each in workers(s.case.tenant_id):
        if each.username == username and each.pk not in s.parties:
            return each
    raise FieldErrors({"to": "Name somebody who may work cases here and did not ask for this refund."})


def snooze(person: User, case_id: object, *, revision: int, seen_sha256: str, until: date | None) -> Case:
    """Put it away until that day begins where the tenant is; None brings it back. Its deadline stays what it is."""
    saw = seen(revision, seen_sha256, decides=False)

    def plan(s: Situation) -> Plan:
        at = None if until is None else _morning(s, until)
        sleeps = decision(s, person, "snooze", saw, "snoozed", {"until": at and at.isoformat()},
                          columns={"snoozed_until": at})
        return Plan(sleeps)

    return do(person, case_id, "snooze", saw, plan)


def _morning(s: Situation, until: date) -> datetime:
    if type(until) is not date:
        raise FieldErrors({"until": "Use a date."})
    zone = ZoneInfo(s.case.tenant.time_zone)
    today = s.now.astimezone(zone).date()
    if not today < until <= today + timedelta(days=SNOOZE_MOST):
        raise FieldErrors({"until": f"Use a day from tomorrow on, at most {SNOOZE_MOST} days ahead."})
    return datetime.combine(until, time(), zone)


def comment(person: User, case_id: object, *, revision: int, seen_sha256: str, text: str) -> Case:
    saw = seen(revision, seen_sha256, decides=False)
    written = check_text(text, "text", most=2000).strip()
    if not written:
        raise FieldErrors({"text": "Write something."})
    return do(person, case_id, "comment", saw,
              lambda s: Plan(decision(s, person, "comment", saw, "commented", {"text": written})))
