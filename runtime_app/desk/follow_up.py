"""A new refund that makes an earlier one good: an operation of its own, with an approval of its own, once a case."""

from __future__ import annotations

from runtime_app import tasks
from runtime_app.desk.doing import Plan, closing, decision, do, reason_of, told
from runtime_app.desk.reading import follow_up_key, read
from runtime_app.desk.seen import seen
from runtime_app.desk.situation import Situation
from runtime_app.errors import FieldErrors
from runtime_app.models import Case, CaseEntry, Task, User
from runtime_app.money import Money, check_minor
from runtime_app.tasks import Request
from runtime_app.transitions import Transition

_OUTCOME = "compensated"


def start_compensation(
    person: User, case_id: object, *, revision: int, seen_sha256: str, amount_minor: int, reason: str
) -> Task:
    """Ask, as this person, for a refund of at most what the first one was. A case that is open is closed with it, so
    that its payment is free again. Begun and not stored, it is finished by the same call with the same values."""
    saw = seen(revision, seen_sha256, decides=True)
    amount, why = check_minor(amount_minor), reason_of(reason)

    def plan(s: Situation) -> Plan:
        _check(s, amount)
        said = {"request_key": follow_up_key(s.case.id), "amount_minor": amount, "reason": why}
        if s.open:
            decides = decision(s, person, "start_compensation", saw, "compensated", said, close_as=_OUTCOME)
            return Plan(decides, closing(s, _OUTCOME, why))
        tells = Transition(events=(told(s, "case.decided", _OUTCOME, why),), keep_lease=True, starts=None)
        return Plan(decision(s, person, "start_compensation", saw, "compensated", said), tells)

    # The decision first: from then on nobody picks another route, and the request has one key, whoever stores it.
    before = _begun(read(person, case_id), person)
    case = do(person, case_id, "start_compensation", saw, plan) if before is None else read(person, case_id).case
    return _stored(person, case, before.data if before else {"amount_minor": amount, "reason": why})


def _begun(s: Situation, person: User) -> CaseEntry | None:
    """What this person decided before, when the request of it was never stored."""
    if s.follow_up is not None:
        return None
    return next((e for e in reversed(s.entries) if e.kind == "compensated" and e.person_id == person.pk), None)


def _check(s: Situation, amount: int) -> None:
    assert s.operation is not None  # the rules ask for one that is proved not to have arrived
    if amount > s.most_minor:
        most = Money(s.most_minor, s.operation.currency)
        raise FieldErrors({"amount_minor": f"Use at most {most}, which is what the first refund was."})


def _stored(person: User, case: Case, said: dict[str, object]) -> Task:
    assert case.operation is not None
    amount, reason = said["amount_minor"], said["reason"]
    assert isinstance(amount, int) and isinstance(reason, str)
    request = Request(
        "refund", case.operation.order_ref, payment_ref=case.operation.payment_ref, amount_minor=amount,
        currency=case.operation.currency, reason=reason,
    )
    task_id = case.task_id or case.operation.task_id
    return tasks.create(person, case.tenant, request, request_key=follow_up_key(case.id), follows=task_id).task


