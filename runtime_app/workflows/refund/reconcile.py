"""Finding out: ask the provider by our own reference, follow the decision table, record what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

from runtime_app.adapters.payments.types import Absent, FindResult, NoSuchRefund, Observation, ProviderRefund
from runtime_app.chronicle import Say
from runtime_app.ids import new_id
from runtime_app.ledger.calls import BeginCall, EndCall
from runtime_app.ledger.cases import OpenCase
from runtime_app.ledger.operations import LearnOperation
from runtime_app.ledger.pace import Grant, over
from runtime_app.money import Money
from runtime_app.reconciliation.classes import CLASSES, graver
from runtime_app.reconciliation.pace import Why
from runtime_app.reconciliation.reading import (
    MISMATCH_CLASS,
    Asked,
    Reading,
    listed,
    not_anothers,
    read,
    read_found,
)
from runtime_app.reconciliation.schedule import next_look
from runtime_app.reconciliation.table import Finding, Row, Situation, Verdict, decide
from runtime_app.states import OperationState
from runtime_app.transitions import NOW, After, Part, Refusal, Transition
from runtime_app.workflows.refund import attach, endings, pacing, resend
from runtime_app.workflows.refund.facts import CaseFacts, OperationFacts, RefundFacts
from runtime_app.workflows.refund.judge import still_right
from runtime_app.workflows.types import Ports

Effect = Callable[[RefundFacts, Ports], Transition]
# Nothing is looked at by itself while a person has one of these: only when somebody asks, or a notice hints.
FROZEN_BY = frozenset({*MISMATCH_CLASS.values(), "KEY_CONFLICT"})


def on_reconciling(facts: RefundFacts, ports: Ports) -> Transition:
    """Write down that the provider is asked, then ask; later, where its account's pace does not allow it now."""
    operation, grant = _operation(facts), Grant()
    account = facts.accounts.get(operation.account)
    if account is None or account.provider not in ports.providers:
        return _nobody_to_ask(facts, ports)
    call = BeginCall(id=new_id(), operation_id=operation.id, kind="query")
    return Transition(
        parts=(pacing.leave(facts, ports, grant), call), then=_paced(ask(call), grant), lock=operation.id,
        if_refused={"paced": partial(_not_now, facts, ports)},
    )


def _not_now(facts: RefundFacts, ports: Ports, refusal: Refusal) -> Transition:
    """A look that is not made proves nothing and counts as nothing, neither as a look nor as a start."""
    later = Transition(due=After(refusal.facts["seconds"]), starts=max(0, facts.task.starts - 1))
    return _handed_over(facts, ports, later) if refusal.facts["why"] == Why.CLOSED else later


def _nobody_to_ask(facts: RefundFacts, ports: Ports) -> Transition:
    """The operation's account is not there, or its secrets cannot be opened: it is waited for, as for an outage."""
    why = f"the account {_operation(facts).account} is not there, or its secrets cannot be opened"
    later = Transition(
        due=After(ports.timing.retry_most), starts=max(0, facts.task.starts - 1), columns={"last_error": why}
    )
    return _handed_over(facts, ports, later)


def _handed_over(facts: RefundFacts, ports: Ports, later: Transition) -> Transition:
    """After a day without anybody to ask, a person is told; the waiting goes on."""
    if _since(_operation(facts).first_submit_at, facts.task.now) < ports.timing.handover:
        return later
    nothing = Reading(Finding.INCONCLUSIVE)
    row = decide(Situation(nothing.finding, handover_passed=True))
    events, parts, columns = opened(facts, _case(row, nothing), row.when, nothing)
    return replace(later, events=events, parts=parts, columns={**later.columns, **columns})


def _paced(look: Effect, grant: Grant) -> Effect:
    def effect(facts: RefundFacts, ports: Ports) -> Transition:
        try:
            transition = look(facts, ports)
        finally:
            over(facts.task.tenant_id, _operation(facts).account, grant)
        return replace(transition, parts=(pacing.answered(facts, ports, grant, transition), *transition.parts))

    return effect


def ask(call: BeginCall) -> Effect:
    def effect(facts: RefundFacts, ports: Ports) -> Transition:
        if (named := attach.wanted(facts)) is not None:
            return _attach(facts, ports, call, *named)
        answer = _answer(facts, ports)
        seen = read(answer, asked(_operation(facts)))
        if _cannot_be_asked(facts, ports):
            seen = Reading(Finding.NO_LOOKUP)
        end = EndCall(call.id, call.operation_id, "provider_query", *_outcome(seen.finding), answer.seen)
        return _answered(facts, follow(facts, ports, seen, end), seen)

    return effect


def found_in_list(
    facts: RefundFacts, ports: Ports, call: BeginCall, refunds: tuple[ProviderRefund, ...], seen: Observation
) -> Transition:
    """A look at an operation all of whose refunds were found in a list of many."""
    reading = read_found(refunds, asked(_operation(facts)))
    end = EndCall(call.id, call.operation_id, "provider_query", *_outcome(reading.finding), seen)
    transition = follow(facts, ports, reading, end)
    return replace(transition, parts=(call, *transition.parts))


def _attach(facts: RefundFacts, ports: Ports, call: BeginCall, case: CaseFacts, ref: str) -> Transition:
    """Look at the refund that a person has named, and go on with it only if it fits and is nobody else's."""
    operation = _operation(facts)
    answer = ports.provider(facts.account).retrieve_refund(facts.account, refund_ref=ref, deadline=ports.deadline)
    seen, why = attach.judge(answer, asked(operation), operation.id)
    end = EndCall(call.id, operation.id, "provider_query", *_outcome(seen.finding), answer.seen)
    check = None if case.class_name in FROZEN_BY else After(next_look(ports.timing, operation.checks))
    if why:
        return replace(attach.refusal(case, why, end), due=check)
    taken = replace(attach.refusal(case, "This refund belongs to another operation.", end), due=check)
    transition = _answered(facts, follow(facts, ports, seen, end), seen)
    return attach.accepted(transition, ref, operation.id, taken)


def _answered(facts: RefundFacts, transition: Transition, seen: Reading) -> Transition:
    """Whoever asked for this look is told that it was made, and what refunds it showed unless it showed nothing."""
    showed = None if seen.finding in {Finding.INCONCLUSIVE, Finding.NO_LOOKUP} else listed(seen.alike or seen.alive)
    answers = tuple(attach.Answer(case.id, seen.finding.value, showed) for case in facts.cases if case.asked)
    return replace(transition, parts=(*transition.parts, *answers)) if answers else transition


def _answer(facts: RefundFacts, ports: Ports) -> FindResult | NoSuchRefund:
    """By our own reference first, which shows a duplicate too; by the provider's when that one is not seen there."""
    operation, provider = _operation(facts), ports.provider(facts.account)
    answer = provider.find_refunds(
        facts.account, operation_id=operation.id, payment_ref=operation.payment_ref, currency=operation.currency,
        deadline=ports.deadline,
    )
    if operation.provider_ref is None or not isinstance(answer, Absent):
        return answer
    named = provider.retrieve_refund(facts.account, refund_ref=operation.provider_ref, deadline=ports.deadline)
    return not_anothers(named, operation.id)


def _cannot_be_asked(facts: RefundFacts, ports: Ports) -> bool:
    return ports.provider(facts.account).capabilities(facts.account).lookup == "none"


def asked(operation: OperationFacts) -> Asked:
    return Asked(
        operation.payment_ref, Money(operation.amount_minor, operation.currency), operation.provider_ref,
        operation.first_submit_at,
    )


def _outcome(finding: Finding) -> tuple[str, str]:
    outcomes = {Finding.SUCCEEDED: "succeeded", Finding.PENDING: "pending", Finding.FAILED: "declined"}
    return outcomes.get(finding, "unknown"), finding.value


def follow(facts: RefundFacts, ports: Ports, seen: Reading, end: EndCall) -> Transition:
    """The transition the decision table asks for."""
    operation = _operation(facts)
    absents = operation.absents + (seen.finding in {Finding.ABSENT, Finding.LOOKALIKES})
    situation = _situation(facts, ports, seen, absents)
    row = decide(situation)
    if row.verdict == Verdict.RESEND and not (right := still_right(facts, ports)):
        # What was agreed to is not what would be sent now: only people can end it, as when the key's window has closed.
        row = decide(replace(situation, may_resend=False, resend_ended=situation.resend_ended or right is False))
    known = LearnOperation(
        operation.id, operation.state, None, provider_ref=seen.refund.ref if seen.refund else None,
        checks=operation.checks + 1, absents=absents, resends=operation.resends,
        resend_disabled=operation.resend_disabled, note=f"row {row.number}: {seen.finding.value}",
    )
    return _transition(facts, ports, row, known, seen, end)


def _situation(facts: RefundFacts, ports: Ports, seen: Reading, absents: int) -> Situation:
    operation, timing, now = _operation(facts), ports.timing, facts.task.now
    capabilities = ports.provider(facts.account).capabilities(facts.account)
    age = _since(operation.first_submit_at, now)
    window = max(0.0, (capabilities.key_window or 0.0) - timing.key_margin)
    ended = operation.resend_disabled or operation.resends >= timing.resend_most or age >= window
    in_flight = capabilities.max_in_flight if capabilities.max_in_flight is not None else timing.max_in_flight
    return Situation(
        finding=seen.finding,
        cancel_wished=facts.task.cancel_wished_at is not None,
        aged=age >= timing.absent_age,
        absent_counts=absents >= timing.absent_count and age >= timing.absent_age,
        horizon_passed=_since(operation.last_possible_send_at, now) >= in_flight,
        no_sender=ports.sender_holds(operation.id) and _since(operation.last_possible_send_at, now) >= 0,
        may_resend=not ended and capabilities.replays == "all" and ports.may_send(operation.id),
        resend_ended=ended or capabilities.replays != "all",
        # Somebody who asks to cancel knows of it already: the provider is asked before it is said once more.
        pending_too_long=age >= timing.pending_sla and all(c.asked.get("what") != "cancel" for c in facts.cases),
        can_cancel=seen.refund is not None and seen.refund.status in capabilities.can_cancel,
        handover_passed=age >= timing.handover,
    )


def _since(then: datetime | None, now: datetime) -> float:
    return (now - then).total_seconds() if then else 0.0


def _transition(
    facts: RefundFacts, ports: Ports, row: Row, known: LearnOperation, seen: Reading, end: EndCall
) -> Transition:
    told = Say("operation.checked", {"finding": end.finding, "row": row.number, "absents": known.absents})
    match row.verdict:
        case Verdict.COMPLETE | Verdict.COMPLETE_TOO_LATE:
            return endings.complete(facts, known, seen, end, told)
        case Verdict.CASE_DUPLICATE if end.outcome == "succeeded" or _one_moved(seen):
            return endings.complete(facts, known, seen, end, told, duplicate=True)
        case Verdict.DECLINED:
            return endings.declined(facts, known, seen, end, told)
        case Verdict.NOT_EXECUTED:
            return endings.not_executed(facts, known, end, told, watch_in=ports.timing.late_watch_every)
        case Verdict.RESEND:
            return resend.resend(facts, ports, known, end, told, follow)
        case Verdict.SEND_CANCEL if seen.refund is not None:
            return resend.send_cancel(facts, ports, known, seen.refund, end, told)
    return _wait(facts, ports, row, known, seen, end, told)


def _one_moved(seen: Reading) -> bool:
    """The first of several is as asked for and has moved; else it is only clear that there are several."""
    return seen.refund is not None and seen.refund.status == "succeeded" and not seen.differs


def _wait(
    facts: RefundFacts, ports: Ports, row: Row, known: LearnOperation, seen: Reading, end: EndCall, told: Say
) -> Transition:
    """Nothing is proved: look again later, and open the case that the row asks for."""
    pending = row.verdict in {Verdict.WAIT_PENDING, Verdict.CASE_STALE_PENDING, Verdict.CASE_DUPLICATE}
    look = NOW if row.verdict == Verdict.LOOK_AGAIN else After(next_look(ports.timing, known.checks, pending=pending))
    case = _case(row, seen)
    check = None if case in FROZEN_BY else look
    state = OperationState.PENDING if pending else OperationState.UNKNOWN
    if end.finding == Finding.INCONCLUSIVE:
        state = known.state  # a look that showed nothing takes nothing back
    events, parts, columns = opened(facts, case, row.when, seen)
    return Transition(
        events=(told, *events),
        parts=(end, replace(known, state=state, check=check,
                            resend_disabled=known.resend_disabled or row.verdict == Verdict.STOP_RESENDS), *parts),
        columns=columns, due=check,
    )


def _case(row: Row, seen: Reading) -> str | None:
    if row.verdict == Verdict.CASE_MISMATCH:
        return MISMATCH_CLASS[seen.differs or "amount"]
    return row.verdict.value.partition("case:")[2] or None


def opened(
    facts: RefundFacts, case: str | None, why: str, seen: Reading
) -> tuple[tuple[Say, ...], tuple[Part, ...], dict[str, str]]:
    """Events, rows and the task's mark for a case of this class; nothing when there is none or it is open already."""
    if case is None:
        return (), (), {}
    known, operation = [c.class_name for c in facts.cases], _operation(facts)
    mark = case
    for other in known:
        mark = graver(other, mark)
    if case in known:
        return (), (), {"attention": mark}
    part = OpenCase(
        case, operation.account, operation.payment_ref, operation.order_ref, operation.id, operation.amount_minor,
        operation.currency, why=CLASSES[case].says,
        details={"when": why, "refunds": listed(seen.alike or seen.alive)},
    )
    return (Say("case.opened", {"class": case, "why": why}),), (part,), {"attention": mark}


def _operation(facts: RefundFacts) -> OperationFacts:
    assert facts.operation is not None  # a task reconciles only with an operation
    return facts.operation
