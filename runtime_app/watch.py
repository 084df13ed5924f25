"""Looks at operations whose outcome was proved before: a late truth is not impossible, but it is found and shown.

What was proved absent or refused is looked at again for a while; anything proved is looked at when a notice or a
statement hints at it. The task keeps its end; the operation and the balance follow the money, and a person is told.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from uuid import UUID

from django.db import InterfaceError, OperationalError
from rq.timeouts import JobTimeoutException

from runtime_app import accounts, rows
from runtime_app.adapters.payments.types import (
    Absent,
    Deadline,
    FindResult,
    Inconclusive,
    NoSuchRefund,
    PaymentProvider,
    ProviderAccount,
    RefundStatus,
)
from runtime_app.chronicle import Say
from runtime_app.ids import new_id
from runtime_app.ledger.balances import ConsumeLate, ReturnExcess, ReturnRefund
from runtime_app.ledger.calls import BeginCall, EndCall
from runtime_app.ledger.cases import OpenCase
from runtime_app.ledger.operations import FollowMoney, Unmoved
from runtime_app.ledger.pace import AtPace, Grant
from runtime_app.money import Money
from runtime_app.outbox import Tell, tell_order_system
from runtime_app.reconciliation.classes import CLASSES, graver
from runtime_app.reconciliation.pace import LOOK, hear
from runtime_app.reconciliation.reading import Asked, Reading, listed, not_anothers, read
from runtime_app.reconciliation.table import Finding, Situation, Verdict, decide
from runtime_app.states import OperationState, Status
from runtime_app.timing import Timing
from runtime_app.transitions import Applied, Guard, Part, Refused, Transition, apply_one
from runtime_app.workflows.types import Ports

log = logging.getLogger(__name__)
_ENDED = "('succeeded', 'failed', 'not_executed')"


@dataclass(frozen=True, slots=True)
class Watched:
    id: UUID
    tenant_id: UUID
    account: str
    order_ref: str
    payment_ref: str
    amount: Money
    state: OperationState
    provider_ref: str | None
    first_submit_at: datetime | None
    guard: Guard
    tenant: str
    again_at: datetime  # somebody else looks then, if this look does not come to its end


def watch(ports: Ports, *, actor: str, limit: int = 20) -> int:
    """Look at the operations whose next look is due; returns how many were looked at."""
    found = rows.run(
        "UPDATE runtime_app_operation AS o SET next_check_at = runtime_now() + make_interval(secs => %s)"
        " FROM runtime_app_task t, runtime_app_tenant n WHERE t.id = o.task_id AND n.id = o.tenant_id AND o.id IN ("
        f" SELECT id FROM runtime_app_operation WHERE state IN {_ENDED} AND next_check_at <= (SELECT runtime_now())"
        " ORDER BY next_check_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED)"
        " RETURNING o.id, o.task_id, o.tenant_id, o.account, o.order_ref, o.payment_ref, o.amount_minor, o.currency,"
        " o.state, o.provider_ref, o.first_submit_at, t.revision, t.status, n.slug, o.next_check_at",
        [ports.timing.lease, limit],
    )
    held = accounts.of_tenants({row[2] for row in found})
    for row in found:
        watched = Watched(
            id=row[0], tenant_id=row[2], account=row[3], order_ref=row[4], payment_ref=row[5],
            amount=Money(row[6], row[7]), state=OperationState(row[8]), provider_ref=row[9], first_submit_at=row[10],
            guard=Guard(row[1], row[11], Status(row[12])), tenant=row[13], again_at=row[14],
        )
        account = held.get(watched.tenant_id, {}).get(watched.account)
        if account is None or account.provider not in ports.providers:
            _rest(watched, ports.timing, told_nothing=True)
            continue
        try:
            _look(watched, account, ports, actor)
        except (JobTimeoutException, OperationalError, InterfaceError):
            raise
        except Exception:  # one that raises does not stop the others; it is looked at again when its claim ends
            log.exception("operation %s cannot be looked at", watched.id)
    return len(found)


def _rest(watched: Watched, timing: Timing, *, told_nothing: bool = False) -> None:
    """When to look again, unless somebody has hinted at it since this look began. A look that was told nothing is made
    again: whoever hinted has no other way to be heard."""
    rows.run(
        "UPDATE runtime_app_operation AS o SET next_check_at = CASE"
        " WHEN %s THEN runtime_now() + make_interval(secs => %s)"
        " WHEN o.last_possible_send_at > runtime_now()"
        " - make_interval(secs => CASE o.state WHEN 'not_executed' THEN %s WHEN 'failed' THEN %s ELSE 0 END)"
        " THEN runtime_now() + make_interval(secs => %s) END WHERE o.id = %s AND o.next_check_at = %s",
        [told_nothing, timing.retry_most, timing.late_watch, timing.refused_watch, timing.late_watch_every,
         watched.id, watched.again_at],
    )


def is_anything_due() -> bool:
    return bool(
        rows.run(
            f"SELECT 1 FROM runtime_app_operation WHERE state IN {_ENDED}"
            " AND next_check_at <= (SELECT runtime_now()) LIMIT 1"
        )
    )


def hint(operation_id: UUID) -> bool:
    """Have an operation with a proved outcome looked at soon; False when its outcome is not proved."""
    return bool(
        rows.run(
            f"UPDATE runtime_app_operation SET next_check_at = runtime_now() WHERE id = %s AND state IN {_ENDED}"
            " RETURNING id",
            [operation_id],
        )
    )


def _look(watched: Watched, account: ProviderAccount, ports: Ports, actor: str) -> None:
    call, grant = BeginCall(id=new_id(), operation_id=watched.id, kind="query"), Grant()
    pace = AtPace(watched.account, ports.timing, grant, cost=LOOK)
    begun = apply_one(watched.guard, Transition(parts=(pace, call), starts=None), actor=actor)
    if isinstance(begun, Refused):
        _later(watched.id, begun.refusal.facts["seconds"])
    if not isinstance(begun, Applied):
        return
    provider = ports.provider(account)
    deadline = Deadline.after(ports.timing.connect_timeout + ports.timing.read_timeout)
    answer = _answer(watched, account, provider, deadline)
    seen = _read(answer, watched)
    row = decide(Situation(seen.finding, ended_as=watched.state))
    outcome = {"found_succeeded": "succeeded", "found_pending": "pending", "found_failed": "declined"}
    end = EndCall(
        call.id, watched.id, "provider_query", outcome.get(seen.finding.value, "unknown"), seen.finding.value,
        answer.seen,
    )
    pace = replace(pace, cost=0.0, heard=hear(answer), sweeps=provider.capabilities(account).sweeps)
    found = _transition(watched, row.verdict, seen, end)
    apply_one(watched.guard, replace(found, parts=(pace, *found.parts)), actor=actor)
    _rest(watched, ports.timing, told_nothing=isinstance(answer, Inconclusive))


def _answer(
    watched: Watched, account: ProviderAccount, provider: PaymentProvider, deadline: Deadline
) -> FindResult | NoSuchRefund:
    """By our own reference first; by the provider's where that one is not seen there, as of a refund that a person has
    named."""
    answer = provider.find_refunds(
        account, operation_id=watched.id, payment_ref=watched.payment_ref, currency=watched.amount.currency,
        deadline=deadline,
    )
    if watched.provider_ref is None or not isinstance(answer, Absent):
        return answer
    return not_anothers(
        provider.retrieve_refund(account, refund_ref=watched.provider_ref, deadline=deadline), watched.id
    )


def _read(answer: FindResult | NoSuchRefund, watched: Watched) -> Reading:
    """What differs is only of matter in what may move: people may have accepted it as what happened."""
    asked = Asked(watched.payment_ref, watched.amount, watched.provider_ref, watched.first_submit_at)
    seen = read(answer, asked)
    return replace(seen, finding=Finding.FAILED) if seen.finding == Finding.MISMATCH and not seen.alive else seen


def _later(operation_id: UUID, seconds: float) -> None:
    rows.run(
        "UPDATE runtime_app_operation SET next_check_at = runtime_now() + make_interval(secs => %s)"
        f" WHERE id = %s AND state IN {_ENDED}",
        [seconds, operation_id],
    )


def _transition(watched: Watched, verdict: Verdict, seen: Reading, end: EndCall) -> Transition:
    match verdict:
        case Verdict.CASE_LATE if any(r.status == RefundStatus.SUCCEEDED for r in seen.alive):
            return _landed(watched, seen, end)
        case Verdict.CASE_LATE:
            return _transition(watched, Verdict.CASE_LATE_ACCEPTED, seen, end)
        case Verdict.CASE_LATE_ACCEPTED:
            why = "the provider has accepted it after its absence or refusal had been proved"
            return _told(watched, "LATE_EXECUTION", why, seen, (end,))
        case Verdict.CASE_RETURNED:
            why = "the provider shows it as failed after it had succeeded"
            parts: tuple[Part, ...] = (
                end, ReturnRefund(), FollowMoney(watched.id, OperationState.RETURNED, end.id),
                _tell(watched, "returned", watched.provider_ref),
            )
            returned = Say("operation.returned", {"operation": str(watched.id), "code": _code(seen)})
            return _told(watched, "RETURNED", why, seen, parts, returned)
        case Verdict.CASE_DUPLICATE:
            if _is_told(watched, seen):
                return Transition(parts=(end,), starts=None)
            taken = (ConsumeLate(watched.account, watched.payment_ref, _here(watched, seen)),)
            return _told(watched, "DUPLICATE_EXECUTION", "the provider shows more than one", seen, (end, *taken))
        case Verdict.STANDS if seen.finding == Finding.SUCCEEDED and watched.state == OperationState.SUCCEEDED:
            return _excess_back(watched, seen, end)
    return Transition(parts=(end,), starts=None)


def _excess_back(watched: Watched, seen: Reading, end: EndCall) -> Transition:
    """One of several came back: what was taken for it may be refunded again."""
    moved = _here(watched, seen)
    booked = rows.run(
        "SELECT h.amount_minor FROM runtime_app_hold h WHERE h.task_id = %s AND h.state = 'consumed'"
        " ORDER BY h.taken_at DESC, h.id DESC", [watched.guard.task_id],
    )
    back = sum(row[0] for row in booked) - moved
    if len(booked) < 2 or back < booked[0][0]:
        return Transition(parts=(end,), starts=None)
    said = Say("operation.excess_returned", {"operation": str(watched.id), "amount_minor": back,
                                             "currency": watched.amount.currency})
    excess = ReturnExcess(watched.account, watched.payment_ref, moved)
    return Transition(events=(said,), parts=(end, excess), starts=None)


def _code(seen: Reading) -> str:
    return (seen.refund.failure_reason if seen.refund else None) or "failed"


def _here(watched: Watched, seen: Reading) -> int:
    """What of it moved on this payment, in minor units; another payment or currency is the case's to tell."""
    return sum(
        r.amount.minor for r in seen.alive
        if (r.payment_ref or watched.payment_ref, r.amount.currency) == (watched.payment_ref, watched.amount.currency)
    )


def _tell(watched: Watched, status: str, ref: str | None, minor: int | None = None) -> Tell:
    return tell_order_system(
        watched.id, tenant=watched.tenant, order_ref=watched.order_ref, payment_ref=watched.payment_ref,
        amount_minor=watched.amount.minor if minor is None else minor, ref=ref, status=status,
    )


def _landed(watched: Watched, seen: Reading, end: EndCall) -> Transition:
    moved, ref = _here(watched, seen), seen.refund.ref if seen.refund else None
    taken: tuple[Part, ...] = ()
    if moved:  # nothing of this payment else, and the order system is not told that there was
        taken = (ConsumeLate(watched.account, watched.payment_ref, moved), _tell(watched, "succeeded", ref, moved))
    succeeded = Say("operation.succeeded", {"operation": str(watched.id), "provider_ref": ref, "late": True})
    why = "it was executed after its absence or refusal had been proved"
    known = FollowMoney(watched.id, OperationState.SUCCEEDED, end.id, ref)
    parts = (end, *taken, known)
    return _told(watched, "LATE_EXECUTION", why, seen, parts, succeeded)


def _told(watched: Watched, name: str, why: str, seen: Reading, parts: tuple[Part, ...], *says: Say) -> Transition:
    """The task keeps its end; the case, once for as long as it is open, and the mark tell people."""
    case = OpenCase(
        name, watched.account, watched.payment_ref, watched.order_ref, watched.id, watched.amount.minor,
        watched.amount.currency, why=CLASSES[name].says, details={
            "when": why, "refunds": listed(seen.alive or ((seen.refund,) if seen.refund else ())),
        },
    )
    known = _open_classes(watched.guard.task_id)
    opened = () if name in known else (Say("case.opened", {"class": name, "why": why}),)
    if not opened and not says:  # a person has it already; what else it shows is booked all the same
        return Transition(parts=parts, starts=None)
    parts = (*parts, Unmoved(watched.id, watched.state), case)
    mark = reduce(graver, known, name)
    return Transition(events=(*says, *opened), columns={"attention": mark}, parts=parts, starts=None)


def _is_told(watched: Watched, seen: Reading) -> bool:
    """Whether a case has told a person of these very refunds; one that was closed is not opened again for them."""
    told = rows.run(
        "SELECT details -> 'refunds' FROM runtime_app_case WHERE operation_id = %s AND class_name = %s",
        [watched.id, "DUPLICATE_EXECUTION"],
    )
    shown = {refund.ref for refund in seen.alive}
    return any(shown <= {refund["ref"] for refund in _loaded(refunds)} for (refunds,) in told)


def _loaded(value: str | list[dict[str, str]]) -> list[dict[str, str]]:
    loaded: list[dict[str, str]] = json.loads(value) if isinstance(value, str) else value
    return loaded


def _open_classes(task_id: UUID) -> list[str]:
    """Of the task's open cases: the gravest is the mark that it wears."""
    found = rows.run("SELECT class_name FROM runtime_app_case WHERE task_id = %s AND state = 'open'", [task_id])
    return [row[0] for row in found]
