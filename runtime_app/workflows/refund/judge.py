"""Before submission: what is missing, who must agree, and whether what was agreed still holds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from approvals.requests import AskApproval, CloseApprovals
from approvals.rules import Review, Rules, limit
from runtime_app.chronicle import Say, canonical
from runtime_app.currencies import EXPONENTS
from runtime_app.ids import new_id
from runtime_app.ledger.balances import EndHold, TakeHold
from runtime_app.ledger.calls import BeginCall
from runtime_app.ledger.cases import OpenCase, Unblocked
from runtime_app.ledger.looks import LookAtPayment
from runtime_app.ledger.operations import SubmitOperation
from runtime_app.money import Money
from runtime_app.reconciliation.schedule import backoff
from runtime_app.states import Parked, Status
from runtime_app.transitions import NEVER, NOW, After, Refusal, Transition
from runtime_app.workflows.refund.agreement import StillAgreed
from runtime_app.workflows.refund.compare import Unexplained, compare
from runtime_app.workflows.refund.facts import EFFECT, RefundFacts
from runtime_app.workflows.refund.material import differences, fingerprint
from runtime_app.workflows.refund.order import CannotRefund, Judged, Missing, NotNow, held_at, judge
from runtime_app.workflows.refund.submit import send
from runtime_app.workflows.types import Ports


def on_queued(facts: RefundFacts, ports: Ports) -> Transition:
    """Judge the request: fail, wait for input, wait for people, or hold the amount and be ready."""
    if facts.tenant.suspended:
        return _park(Parked.TENANT_SUSPENDED)
    judged = judge(facts, ports)
    if isinstance(judged, NotNow):
        return postpone(facts, ports, judged)
    if isinstance(judged, CannotRefund):
        return _fail(judged.code, judged.why)
    if isinstance(judged, Missing):
        return _wait_for_input(facts, ports, judged.fields)
    rules = rules_of(facts, ports)
    if rules.forbids(_amount(facts), judged.balance.currency):
        return _forbid(facts, rules, judged.balance.currency)
    needs_people = bool(_needed(facts, rules))
    if needs_people and facts.task.requester_id is None:
        sentence = "Above the threshold a person must stand behind the request: name one of this tenant."
        return _wait_for_input(facts, ports, {"on_behalf_of": sentence})
    return _ask(facts, rules, judged) if needs_people else _go_on(facts, rules, judged)


def rules_of(facts: RefundFacts, ports: Ports) -> Rules:
    return facts.tenant.policy.rules(ports.timing.approval_deadline)


def _needed(facts: RefundFacts, rules: Rules) -> tuple[Review, ...]:
    """What the rules ask for; and whatever makes good an earlier refund has an approval of its own, always."""
    currency = facts.task.currency
    assert currency is not None  # whoever asks has judged it present
    return rules.needed(_amount(facts), currency, always=_always(facts))


def _always(facts: RefundFacts) -> bool:
    return "follows" in facts.task.state


def _forbid(facts: RefundFacts, rules: Rules, currency: str) -> Transition:
    most = Money(limit(rules.forbidden_above, currency) or 0, currency)
    why = f"the policy allows no refund over {most}"
    return Transition(
        to=Status.REJECTED,
        events=(Say("task.rejected", {"why": why, "policy_version": facts.tenant.policy.number}),),
    )


def _ask(facts: RefundFacts, rules: Rules, judged: Judged) -> Transition:
    mark, currency = fingerprint(judged.material), judged.balance.currency
    approval = AskApproval.under(
        facts.tenant.policy, rules, fingerprint=mark, now=facts.task.now, always=_always(facts),
        facts={**judged.material, "account": judged.balance.account, "order_read": dict(judged.read)},
        to=facts.task.state.get("asked_by"),
    )
    return Transition(
        to=Status.WAITING_APPROVAL,
        events=(
            Say("order.read", judged.read),
            Say("approval.requested", {
                "approval": str(approval.id), "fingerprint": mark[:12], "threshold_minor": rules.threshold(currency),
                "quorum": approval.quorum, "reviews": [review.name for review in approval.rules.reviews]}),
        ),
        parts=(judged.balance, approval),
        columns=_judged_columns(facts, judged, mark),
        due=approval.deadline_at,
        if_refused={"of_another_order": partial(_of_another_order, judged)},
    )


def _of_another_order(judged: Judged, refusal: Refusal) -> Transition:
    """One payment belongs to one order here; else what remains of it would be told in two ways."""
    order = refusal.facts["order_ref"]
    return _fail("payment_of_another_order", f"The payment {judged.balance.payment_ref} is known as of order {order}.")


def _go_on(facts: RefundFacts, rules: Rules, judged: Judged) -> Transition:
    balance = judged.balance
    too_small = f"Less than {Money(_amount(facts), balance.currency)} remains of {balance.payment_ref}."
    return Transition(
        to=Status.READY,
        events=(
            Say("order.read", judged.read),
            Say("hold.taken", {"amount_minor": _amount(facts), "currency": balance.currency,
                               "payment_ref": balance.payment_ref}),
            Say("task.ready", {"policy": "at or under the threshold",
                               "threshold_minor": rules.threshold(balance.currency)}),
        ),
        parts=(balance, TakeHold(balance.account, balance.payment_ref, _amount(facts))),
        columns=_judged_columns(facts, judged, fingerprint(judged.material)),
        due=NOW,
        if_refused={"balance_too_small": _fail("remaining_too_small", too_small),
                    "of_another_order": partial(_of_another_order, judged)},
    )


def _judged_columns(facts: RefundFacts, judged: Judged, mark: str) -> dict[str, Any]:
    state = {k: v for k, v in facts.task.state.items() if k not in {"waiting_for", "postponed", "asked_by"}}
    state |= {"order": dict(judged.read), "material": dict(judged.material), "account": judged.balance.account}
    return {"payment_ref": judged.balance.payment_ref, "fingerprint": mark, "state": state}


def on_waiting_input(facts: RefundFacts, ports: Ports) -> Transition:
    """The time to give input has passed: the system cancels."""
    why = "nobody gave the missing input in time"
    return Transition(to=Status.CANCELLED, events=(Say("task.cancelled", {"why": why}),))


def on_waiting_approval(facts: RefundFacts, ports: Ports) -> Transition:
    """The time to decide has passed: the system refuses, closed on the safe side."""
    return Transition(
        to=Status.REJECTED,
        events=(Say("approval.expired"), Say("task.rejected", {"why": "nobody decided in time"})),
        parts=(CloseApprovals("expired", "nobody decided in time"),),
    )


def on_ready(facts: RefundFacts, ports: Ports) -> Transition:
    """Read order, facts and authority again; only when all still hold, freeze the request and hand it over."""
    if facts.task.cancel_wished_at is not None:  # wished while a send was under way that is proved not to have happened
        return Transition(
            to=Status.CANCELLED,
            events=(Say("hold.released"), Say("task.cancelled", {"why": "cancelled as wished; nothing was sent"})),
            parts=(EndHold(consumed=False), CloseApprovals("cancelled", "cancelled as wished")),
        )
    if facts.tenant.suspended:
        return _park(Parked.TENANT_SUSPENDED)
    judged = judge(facts, ports)
    if isinstance(judged, NotNow):
        return postpone(facts, ports, judged)
    if isinstance(judged, Missing):
        return _judge_anew(facts, ports, "The request is no longer complete.", sorted(judged.fields))
    if isinstance(judged, CannotRefund):
        return _fail(judged.code, judged.why, EndHold(consumed=False), CloseApprovals("superseded", judged.why))
    if fingerprint(judged.material) != facts.task.fingerprint:
        then = facts.task.state.get("material", {})
        return _judge_anew(facts, ports, "What was agreed on has changed.", differences(then, judged.material))
    if held_at(facts, judged.balance.payment_ref) not in (None, judged.account.id):
        return _judge_anew(facts, ports, "Another account is to pay it now.", ["account"])
    if not _agreed(facts, rules_of(facts, ports)):
        return _judge_anew(facts, ports, "The authority behind the approval is gone.", [])
    if _is_another(facts, judged):
        return Transition(columns={"ordinal": facts.task.ordinal + 1}, due=NOW, starts=None)
    return _compared(facts, ports, judged) or _submit(facts, ports, judged)


def _compared(facts: RefundFacts, ports: Ports, judged: Judged) -> Transition | None:
    """What to do instead of submitting while the provider's own figures do not agree with what was judged."""
    differs = compare(facts, ports, judged)
    match differs:
        case None:
            return None
        case NotNow():
            return postpone(facts, ports, differs)
        case CannotRefund(code=code, why=why):
            return _fail(code, why, EndHold(consumed=False), CloseApprovals("superseded", why))
        case OpenCase(class_name=name, why=why):
            return Transition(
                events=(Say("case.opened", {"class": name, "why": why}), *_parked(Parked.CASE_OPEN)),
                columns={"parked_reason": Parked.CASE_OPEN, "attention": name}, parts=(differs,), due=NOW,
            )
        case Unexplained(why=why):
            look = LookAtPayment(judged.account.id, judged.balance.payment_ref, why)
            later = postpone(facts, ports, NotNow(why))
            return replace(later, parts=(look,))


def _agreed(facts: RefundFacts, rules: Rules) -> bool:
    """Nobody need agree, or enough people who may still decide have approved exactly this, under these rules."""
    if not _needed(facts, rules):
        return True
    approval = facts.approval
    return approval is not None and approval.holds and approval.given.fingerprint == facts.task.fingerprint


def still_right(facts: RefundFacts, ports: Ports) -> bool | None:
    """Order, facts and authority hold as they did when the operation was frozen: asked before a same-key resend. None
    when that cannot be said now."""
    operation, judged = facts.operation, judge(facts, ports)
    if isinstance(judged, NotNow) or facts.tenant.suspended:
        return None
    if operation is None or not isinstance(judged, Judged):
        return False
    if judged.account.id != operation.account:
        return False
    return _agreed(facts, rules_of(facts, ports)) and fingerprint(judged.material) == operation.fingerprint


def _is_another(facts: RefundFacts, judged: Judged) -> bool:
    """Whether the request that was frozen before, and proved not sent, is not the one that is agreed on now. Then it is
    left as it is, and a new one is frozen; else the same one goes on, under the key that the provider may know."""
    if facts.operation is None:
        return False
    frozen = facts.task.state.get("frozen")
    if frozen is None:  # by a release that did not write it down
        return facts.operation.fingerprint != facts.task.fingerprint
    return bool(frozen != _frozen_for(judged))


def _frozen_for(judged: Judged) -> str:
    """What the bytes of a request depend on, as a digest."""
    names = ("payment_ref", "amount_minor", "currency", "destination", "reason")
    account = judged.account
    said = {"account": account.id, "settings": dict(account.settings), **{n: judged.material[n] for n in names}}
    return hashlib.sha256(canonical(said).encode()).hexdigest()


def _submit(facts: RefundFacts, ports: Ports, judged: Judged) -> Transition:
    task, balance = facts.task, judged.balance
    amount = Money(_amount(facts), balance.currency)
    operation_id = facts.operation_id
    frozen = ports.provider(judged.account).freeze(
        judged.account, operation_id=operation_id, payment_ref=balance.payment_ref, amount=amount, reason=task.reason,
        destination=judged.material["destination"],
    )
    operation = SubmitOperation(
        id=operation_id, effect=EFFECT, ordinal=task.ordinal, account=balance.account, order_ref=task.order_ref,
        payment_ref=balance.payment_ref, amount_minor=amount.minor, currency=amount.currency,
        exponent=EXPONENTS[amount.currency], idempotency_key=str(operation_id), request_body=frozen.body,
        request_sha256=frozen.body_sha256, api_version=frozen.api_version,
        authority=_authority(facts, rules_of(facts, ports)), fingerprint=task.fingerprint,
        send_within=ports.timing.lease,
    )
    call = BeginCall(id=new_id(), operation_id=operation_id, kind="submit")
    return Transition(
        to=Status.EXECUTING,
        events=(
            Say("order.read", judged.read),
            Say("operation.submitted", {
                "operation": str(operation_id), "amount_minor": amount.minor, "currency": amount.currency,
                "payment_ref": balance.payment_ref, "body_sha256": frozen.body_sha256[:12],
                "again": facts.operation is not None}),
        ),
        parts=(StillAgreed.of(facts), Unblocked(task.order_ref, balance.payment_ref), operation, call),
        columns={"state": {**task.state, "frozen": _frozen_for(judged)}},
        then=send(facts.operation, operation, call, judged.account),
        lock=operation_id,
        if_refused={
            "sibling_in_flight": _park(Parked.SIBLING_IN_FLIGHT), "not_agreed": Transition(due=NOW, starts=None),
            "case_open": _park(Parked.CASE_OPEN),
        },
    )


def _authority(facts: RefundFacts, rules: Rules) -> dict[str, Any]:
    """Whose authority the operation rests on, stored with it."""
    basis: dict[str, Any] = {
        "policy_version": facts.tenant.policy.number, "people_needed": bool(_needed(facts, rules)),
        "threshold_minor": rules.threshold(facts.task.currency or ""),
    }
    if facts.approval is not None and facts.approval.holds:
        given = facts.approval.given
        basis |= {"approval": str(given.id), "permission": "decide_approvals",
                  "approvers": [given.names[vote.person_id] for vote in facts.approval.votes],
                  "reviews": [vote.review for vote in facts.approval.votes]}
    return basis


def postpone(facts: RefundFacts, ports: Ports, reason: NotNow) -> Transition:
    """Try again later. An outage of somebody else never uses up the retry budget."""
    task, cause = facts.task, reason.cause[:300]
    return Transition(
        events=(Say("task.postponed", {"why": cause}),) if task.starts == 1 else (),
        due=After(backoff(ports.timing, task.starts)),
        columns={"last_error": cause} | ({"state": {**task.state, **reason.remember}} if reason.remember else {}),
        starts=min(task.starts, ports.timing.retry_budget - 1),
    )


def _park(reason: Parked) -> Transition:
    return Transition(events=_parked(reason), columns={"parked_reason": reason}, due=NOW)


def _parked(reason: Parked) -> tuple[Say, ...]:
    return (Say("task.parked", {"reason": reason}),)


def _judge_anew(facts: RefundFacts, ports: Ports, why: str, changed: list[str]) -> Transition:
    # An order that is never twice the same must not keep a worker to itself: every time but the first waits longer.
    times = facts.task.state.get("judged_anew", 0) + 1
    return Transition(
        to=Status.QUEUED,
        events=(Say("approval.superseded", {"why": why, "changed": changed}), Say("hold.released"),
                Say("task.judged_anew", {"why": why})),
        parts=(EndHold(consumed=False), CloseApprovals("superseded", why)),
        columns={"state": {**facts.task.state, "judged_anew": times}},
        due=NOW if times == 1 else After(backoff(ports.timing, times)),
    )


def _fail(code: str, why: str, *parts: EndHold | CloseApprovals) -> Transition:
    released = (Say("hold.released"),) if any(isinstance(p, EndHold) for p in parts) else ()
    return Transition(to=Status.FAILED, events=(*released, Say("task.failed", {"code": code, "why": why})), parts=parts)


def _wait_for_input(facts: RefundFacts, ports: Ports, fields: Mapping[str, str]) -> Transition:
    return Transition(
        to=Status.WAITING_INPUT,
        events=(Say("task.waiting_input", {"fields": sorted(fields), "asks": dict(fields)}),),
        columns={"state": {**facts.task.state, "waiting_for": dict(fields)}},
        due=After(ports.timing.input_deadline) if ports.timing.input_deadline else NEVER,
    )


def _amount(facts: RefundFacts) -> int:
    assert facts.task.amount_minor is not None  # whoever asks has judged it present
    return facts.task.amount_minor
