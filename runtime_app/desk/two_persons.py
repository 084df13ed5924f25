"""Decisions of two people: the first declares, the second declares the same on the same evidence, and it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from runtime_app.chronicle import Say
from runtime_app.desk import outcomes
from runtime_app.desk.decision import Attested, Decision, NoSender
from runtime_app.desk.doing import Plan, decision, do, mark, reason_of, told, word_of
from runtime_app.desk.seen import Seen, seen
from runtime_app.desk.situation import Declaration, Shown, Situation
from runtime_app.errors import FieldErrors
from runtime_app.ledger.balances import ConsumeLate, EndHold
from runtime_app.ledger.cases import CloseCases
from runtime_app.ledger.looks import LookAtPayment
from runtime_app.ledger.operations import LearnOperation
from runtime_app.models import Case, Operation, User
from runtime_app.outbox import tell_order_system
from runtime_app.reconciliation.classes import graver
from runtime_app.states import OperationState, Status
from runtime_app.transitions import NEVER, After, Part, Transition


@dataclass(frozen=True, slots=True)
class Said:
    """What this person says: `what` is a kind of `outcomes.CODES`, `code` a word of it."""

    person: User
    action: str
    saw: Seen
    what: str
    code: str
    reason: str

    @property
    def data(self) -> dict[str, Any]:
        return {"what": self.what, "code": self.code, "reason": self.reason}


def declare_not_executed(
    person: User, case_id: object, *, revision: int, seen_sha256: str, code: str, reason: str
) -> Case:
    """The provider never executed it. With the second person the refund ends: nothing held, the task failed (cancelled
    when that was wished for). It is watched for longer all the same."""
    said = _said(person, "declare_not_executed", outcomes.NOT_EXECUTED, revision, seen_sha256, code, reason)
    return do(person, case_id, said.action, said.saw, lambda s: _plan(s, said))


def record_as_found(person: User, case_id: object, *, revision: int, seen_sha256: str, code: str, reason: str) -> Case:
    """What happened is what the provider shows instead. With the second person the refund is completed and the task
    keeps its mark. The balance follows what moved on this payment; what moved on another is looked at there."""
    said = _said(person, "record_as_found", outcomes.AS_FOUND, revision, seen_sha256, code, reason)
    return do(person, case_id, said.action, said.saw, lambda s: _plan(s, said))


def _said(
    person: User, action: str, what: str, revision: object, seen_sha256: object, code: object, reason: object
) -> Said:
    saw = seen(revision, seen_sha256, decides=True)
    return Said(person, action, saw, what, word_of(code, "code", outcomes.CODES[what]), reason_of(reason))


def _plan(s: Situation, said: Said) -> Plan:
    first = s.declaration
    if first is None:
        why = f"{outcomes.CODES[said.what][said.code]} {said.reason}"
        waits = Transition(events=(told(s, "case.decided", said.what, why),), keep_lease=True, starts=None)
        return Plan(decision(s, said.person, said.action, said.saw, "declared", said.data), waits)
    if first.code != said.code:
        raise FieldErrors({"code": f"{first.person.shown_name} chose “{first.code}”; both must rest on the same."})
    return (_not_executed if said.what == outcomes.NOT_EXECUTED else _as_found)(s, said, first)


def _decides(s: Situation, said: Said, outcome: str) -> Decision:
    return decision(s, said.person, said.action, said.saw, "declared", said.data, close_as=outcome)


def _operation(s: Situation) -> Operation:
    assert s.operation is not None  # the rules ask for one in doubt
    return s.operation


def _attested(s: Situation, said: Said, first: Declaration, finding: str, **more: Any) -> Attested:
    people = [
        {"person": first.person.username, "reason": first.reason, "at": first.entry.at.isoformat()},
        {"person": said.person.username, "reason": said.reason, "at": s.now.isoformat()},
    ]
    look = s.last_complete
    body = {
        "people": people, "code": said.code, "case": str(s.case.id), "evidence_sha256": s.evidence_sha256,
        "rests_on": str(look.id) if look is not None else None, **more,
    }
    return Attested(_operation(s).id, s.case.id, finding, body)


def _known(s: Situation, state: OperationState, attested: Attested, note: str, check: After | None) -> LearnOperation:
    operation = _operation(s)
    return LearnOperation(
        operation.id, state, check, evidence_id=attested.id, checks=operation.checks, absents=operation.absents,
        resends=operation.resends, resend_disabled=operation.resend_disabled, note=note,
    )


def _why(said: Said, first: Declaration) -> str:
    names = f"{first.person.username} and {said.person.username}"
    return f"{outcomes.CODES[said.what][said.code]} Declared by {names}: {said.reason}"


def _not_executed(s: Situation, said: Said, first: Declaration) -> Plan:
    operation, why = _operation(s), _why(said, first)
    attested = _attested(s, said, first, "declared_not_executed")
    end = Say("task.cancelled", {"why": f"cancelled as wished. {why}"[:500]}) if s.cancel_wished else Say(
        "task.failed", {"code": "not_executed", "why": why[:500]})
    ends = Transition(
        to=Status.CANCELLED if s.cancel_wished else Status.FAILED,
        events=(
            told(s, "case.decided", said.what, why), Say("operation.not_executed", {"operation": str(operation.id)}),
            Say("hold.released"), told(s, "case.closed", "not_executed", outcomes.WORDS["not_executed"]), end,
        ),
        columns={"attention": mark(s, proved=True)},
        parts=(
            NoSender(operation.id), attested, EndHold(consumed=False), CloseCases(operation.id, "not_executed"),
            _known(s, OperationState.NOT_EXECUTED, attested, "declared by two people",
                   After(settings.TIMING.late_watch_every)),
        ),
        due=NEVER,
    )
    return Plan(_decides(s, said, "not_executed"), ends)


def _kept_mark(s: Situation) -> str:
    """What happened is not what was asked for, and the task goes on saying so."""
    other = mark(s, proved=True)
    return s.case.class_name if other is None else graver(s.case.class_name, other)


def _as_found(s: Situation, said: Said, first: Declaration) -> Plan:
    operation, found, why = _operation(s), s.found, _why(said, first)
    assert found is not None  # the rules ask for it
    attested = _attested(
        s, said, first, "recorded_as_found", refund=found.ref, amount_minor=found.amount_minor,
        currency=found.currency, asked_minor=operation.amount_minor,
    )
    succeeded = Say("operation.succeeded", {
        "operation": str(operation.id), "provider_ref": found.ref, "amount_minor": found.amount_minor,
        "currency": found.currency})
    done = Transition(
        to=Status.COMPLETED,
        events=(told(s, "case.decided", said.what, why), succeeded, Say("hold.released"),
                told(s, "case.closed", "recorded_as_found", outcomes.WORDS["recorded_as_found"]),
                Say("task.completed")),
        if_wished=(Say("cancel.too_late"),),
        columns={"attention": _kept_mark(s)},
        parts=(
            NoSender(operation.id), attested, EndHold(consumed=False), *_moved(s, operation, found),
            CloseCases(operation.id, "succeeded"),
            _known(s, OperationState.SUCCEEDED, attested, "recorded as found by two people", NEVER),
        ),
        due=NEVER,
    )
    return Plan(_decides(s, said, "recorded_as_found"), done, rings=True)


def _moved(s: Situation, operation: Operation, found: Shown) -> tuple[Part, ...]:
    """What the money did: counted on this payment, or looked at where it went. Another currency counts nowhere here."""
    if found.payment_ref != operation.payment_ref:
        why = "the provider made a refund of another payment here"
        return (LookAtPayment(operation.account, found.payment_ref, why),)
    if found.currency != operation.currency:
        return ()
    told = tell_order_system(
        operation.id, tenant=s.case.tenant.slug, order_ref=operation.order_ref, payment_ref=operation.payment_ref,
        amount_minor=found.amount_minor, ref=found.ref, status="succeeded",
    )
    return ConsumeLate(operation.account, operation.payment_ref, found.amount_minor), told
