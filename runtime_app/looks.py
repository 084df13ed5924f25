"""A payment looked at as a whole: every refund that the provider shows of it has a name, or a person is told.

A refund that is not ours was made outside of us. It consumes what may still be refunded at once, and stops submissions
on the payment until a person has acknowledged it. Nothing is ever matched by amount alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from rq.timeouts import JobTimeoutException

from approvals.requests import CloseApprovals
from runtime_app import accounts, rows, watch
from runtime_app.adapters.payments.types import (
    Deadline,
    Inconclusive,
    Observation,
    PaymentProvider,
    PaymentSnapshot,
    ProviderAccount,
    ProviderRefund,
    RefundStatus,
)
from runtime_app.chronicle import Say
from runtime_app.ledger.balances import EndHold, keep_provider_external
from runtime_app.ledger.calls import store_evidence
from runtime_app.ledger.cases import OpenCase
from runtime_app.ledger.explained import compared
from runtime_app.ledger.pace import AtPace, Grant, take, tell
from runtime_app.reconciliation.pace import GOOD, LOOK, heard_on
from runtime_app.reconciliation.reading import listed
from runtime_app.reconciliation.schedule import backoff
from runtime_app.states import UNRESOLVED, Status
from runtime_app.timing import Timing
from runtime_app.transitions import NOW, Guard, Transition, apply_one
from runtime_app.workflows.types import Ports

log = logging.getLogger(__name__)
_NO_MONEY = {RefundStatus.FAILED, RefundStatus.CANCELED}
_TRIES_MOST = 8  # looks that do not add up before a person is told so, and the looking stops
_PAGES_MOST = 200
_READ = 4  # read timeouts that one look may take, over all its pages


class Superseded(Exception):
    """Another worker has looked since, and written down what it saw; what this one read is older."""


@dataclass(frozen=True, slots=True)
class Look:
    """In this worker's hand `until` then, the very value that stands in its row while nobody has asked again."""

    id: UUID
    tenant_id: UUID
    account: str
    payment_ref: str
    tries: int
    until: datetime
    begun: datetime
    since: str | None  # when it did not add up for the first time

    def tells(self, timing: Timing, *, answered: bool) -> bool:
        """Whether a person is to be told by now. Many who ask at once make the tries quick, but the time is given."""
        if self.since is None:
            return False
        age = (self.begun - datetime.fromisoformat(self.since)).total_seconds()
        return (self.tries >= _TRIES_MOST and age >= timing.absent_age) if answered else age >= timing.handover


@dataclass(frozen=True, slots=True)
class Shown:
    """What the provider shows; `trouble` says why it is not the whole of it."""

    refunds: tuple[ProviderRefund, ...]
    seen: Observation
    trouble: str = ""
    answered: bool = True
    total: PaymentSnapshot | None = None  # what the provider says of the payment itself


@dataclass(frozen=True, slots=True)
class Ours:
    states: dict[str, str]  # by operation id
    refs: dict[str, str]  # operation id by the provider's reference
    booked: dict[str, int]  # what of the payment counts as refunded by it, in minor units
    told: frozenset[str]  # a person has an open case of it

    def owner(self, refund: ProviderRefund) -> str | None:
        """The id of the operation of ours that this refund is of, by reference only."""
        return refund.operation_ref if refund.operation_ref in self.states else self.refs.get(refund.ref)

    @property
    def in_doubt(self) -> bool:
        return any(state in UNRESOLVED for state in self.states.values())

    def otherwise(self, refunds: Sequence[ProviderRefund]) -> dict[str, int]:
        """The operations of which the provider shows another sum than is booked, each with what it shows."""
        shown = dict.fromkeys(self.states, 0)
        for refund in refunds:
            if (owner := self.owner(refund)) is not None:
                shown[owner] += refund.amount.minor
        return {id: minor for id, minor in shown.items() if minor != self.booked[id]}


def work(ports: Ports, *, actor: str, limit: int = 1) -> int:
    """Make the looks that are due; returns how many were taken."""
    taken = _claim(limit, max(ports.timing.lease, (_READ + 1) * ports.timing.read_timeout))
    held = accounts.of_tenants({look.tenant_id for look in taken})
    for look in taken:
        account = held.get(look.tenant_id, {}).get(look.account)
        if account is None or account.provider not in ports.providers:
            continue
        try:
            _make(look, account, ports, actor)
        except Superseded:
            log.info("payment look %s was taken up by another worker", look.id)
        except (JobTimeoutException, OperationalError, InterfaceError):
            raise
        except Exception:  # one that raises does not stop the others; it is due again when its claim ends
            log.exception("the payment look %s cannot be made", look.id)
    return len(taken)


def _make(look: Look, account: ProviderAccount, ports: Ports, actor: str) -> None:
    provider = ports.provider(account)
    if not provider.capabilities(account).reads_payments:
        _end(look)  # what it tells of payments comes with its statements
        return
    pace = AtPace(look.account, ports.timing, Grant(), cost=LOOK)
    if seconds := take(look.tenant_id, pace):
        _not_now(look, seconds)
        return
    shown = _read(provider, account, look.payment_ref, ports)
    heard, sweeps = heard_on(shown.seen) if shown.trouble else GOOD, provider.capabilities(account).sweeps
    tell(look.tenant_id, replace(pace, cost=0.0, heard=heard, sweeps=sweeps))
    _record(look, shown, ports, actor)


def _not_now(look: Look, seconds: float) -> None:
    """The account's pace does not allow it; this was no try."""
    rows.run(
        "UPDATE runtime_app_paymentlook SET due_at = runtime_now() + make_interval(secs => %s),"
        " tries = greatest(0, tries - 1) WHERE id = %s",
        [seconds, look.id],
    )


def is_anything_due() -> bool:
    return bool(rows.run("SELECT 1 FROM runtime_app_paymentlook WHERE due_at <= (SELECT runtime_now()) LIMIT 1"))


def _claim(limit: int, seconds: float) -> list[Look]:
    found = rows.run(
        "UPDATE runtime_app_paymentlook AS l SET tries = tries + 1, due_at = runtime_now() + make_interval(secs => %s)"
        " FROM runtime_app_account a WHERE a.id = l.account_id AND l.id IN (SELECT id FROM runtime_app_paymentlook"
        " WHERE due_at <= (SELECT runtime_now()) ORDER BY due_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED)"
        " RETURNING l.id, l.tenant_id, a.ref, l.payment_ref, l.tries, l.due_at, runtime_now(), l.found ->> 'since'",
        [seconds, limit],
    )
    return [Look(*row) for row in found]


def _read(provider: PaymentProvider, account: ProviderAccount, payment_ref: str, ports: Ports) -> Shown:
    """Every page of the payment's refunds, held against the payment's own total."""
    deadline = Deadline.after(_READ * ports.timing.read_timeout)
    refunds: list[ProviderRefund] = []
    cursor: str | None = None
    for _ in range(_PAGES_MOST):
        page = provider.list_refunds(account, payment_ref=payment_ref, since=None, cursor=cursor, deadline=deadline)
        if isinstance(page, Inconclusive):
            return Shown((), page.seen, page.cause, answered=False)
        refunds += page.refunds
        cursor = page.next_cursor
        if cursor is None:
            break
    total = provider.retrieve_payment(account, payment_ref=payment_ref, deadline=deadline)
    if isinstance(total, Inconclusive):
        return Shown((), total.seen, total.cause, answered=total.seen.http_status == 404)
    if len({r.ref for r in refunds}) != len(refunds) or cursor is not None:
        return Shown((), page.seen, "pages that do not follow each other", total=total)
    alive = tuple(r for r in refunds if r.status not in _NO_MONEY)
    if any(r.amount.currency != total.refunded.currency or r.payment_ref != payment_ref for r in alive):
        return Shown((), page.seen, "a refund of another payment or currency in the list", total=total)
    if sum(r.amount.minor for r in alive) != total.refunded.minor:
        return Shown((), page.seen, "the refunds listed do not add up to the payment's total", total=total)
    return Shown(alive, page.seen, total=total)


def _record(look: Look, shown: Shown, ports: Ports, actor: str) -> None:
    """Write down what was found; then have approvals that no longer fit asked anew."""
    with transaction.atomic(durable=True):
        ours = _ours(look)
        unnamed = [r for r in shown.refunds if ours.owner(r) is None]
        undecided = bool(unnamed) and ours.in_doubt  # one of ours may have lost its name on the way
        if shown.trouble or undecided:
            changed = False
            if not shown.trouble or not look.tells(ports.timing, answered=shown.answered):
                _later(look, shown.trouble or "an operation of this payment is in doubt", ports)
            else:
                if ours.states or _order_of(look):  # else told of by a notice only: nobody knows of such a payment
                    _open_disagreement(look, shown.trouble, shown)
                _end(look)
        else:
            otherwise = {} if ours.in_doubt else ours.otherwise(shown.refunds)
            for id in otherwise:  # before the balance is locked: operations come first
                watch.hint(UUID(id))
            changed = _keep_external(look, unnamed)
            for refund in unnamed:
                _open_external(look, refund, shown.seen)
            _follow_up(look, otherwise, ours, shown, ports)
    if changed:
        _ask_anew(look, actor)


def _follow_up(
    look: Look, otherwise: Mapping[str, int], ours: Ours, shown: Shown, ports: Ports
) -> None:
    """Where the provider shows another sum of an operation than is booked, the operation itself is looked at, which
    follows a late truth or tells a person. When that has not explained it after some tries, a person is told here."""
    open = [id for id in sorted(otherwise) if id not in ours.told]
    if not open:
        _end(look)
        return
    sums = f"{otherwise[open[0]]} minor units, and {ours.booked[open[0]]} are booked"
    why = f"the provider shows of operation {open[0]} ({ours.states[open[0]]}) {sums}"
    if not look.tells(ports.timing, answered=True):
        _later(look, why, ports)
    else:
        _open_disagreement(look, why, shown)
        _end(look)


def _ours(look: Look) -> Ours:
    found = rows.run(
        "SELECT o.id::text, o.state, o.provider_ref, CASE WHEN o.state = 'succeeded' THEN coalesce(("
        " SELECT sum(h.amount_minor) FROM runtime_app_hold h JOIN runtime_app_balance b ON b.id = h.balance_id"
        " WHERE h.task_id = o.task_id AND h.state = 'consumed' AND b.account = o.account"
        " AND b.payment_ref = o.payment_ref), 0)::bigint ELSE 0 END,"
        # That it came back explains nothing that is out.
        " EXISTS (SELECT 1 FROM runtime_app_case c WHERE c.operation_id = o.id AND c.state = 'open'"
        " AND c.class_name <> 'RETURNED')"
        " FROM runtime_app_operation o WHERE o.tenant_id = %s AND o.account = %s AND o.payment_ref = %s",
        [look.tenant_id, look.account, look.payment_ref],
    )
    return Ours(
        {r[0]: r[1] for r in found}, {r[2]: r[0] for r in found if r[2] is not None}, {r[0]: r[3] for r in found},
        frozenset(r[0] for r in found if r[4]),
    )


def _later(look: Look, why: str, ports: Ports) -> None:
    since = {"since": look.since or look.begun.isoformat()}
    _put_down(look, backoff(ports.timing, look.tries), since, "why = %s", [why[:200]])


def _end(look: Look) -> None:
    _put_down(look, None, {}, "tries = 0, looked_at = %s", [look.begun])


def _put_down(
    look: Look, again: float | None, found: Mapping[str, str], more: str, values: Sequence[object]
) -> None:
    """Out of this hand, as the last thing that is written: due again after so many seconds, unless somebody has asked,
    or taken it up, meanwhile. Raises Superseded, and the caller's transaction ends with it."""
    kept = json.dumps({**found, "seen": look.begun.isoformat()})
    written = rows.run(
        "UPDATE runtime_app_paymentlook SET due_at = CASE WHEN due_at = %s"
        f" THEN runtime_now() + make_interval(secs => %s::float8) ELSE due_at END, found = %s, {more}"
        " WHERE id = %s AND (found ->> 'seen' IS NULL OR (found ->> 'seen')::timestamptz <= %s) RETURNING id",
        [look.until, again, kept, *values, look.id, look.begun],
    )
    if not written:
        raise Superseded


def _keep_external(look: Look, unnamed: Sequence[ProviderRefund]) -> bool:
    balance = rows.run(
        "SELECT id FROM runtime_app_balance WHERE tenant_id = %s AND account = %s AND payment_ref = %s"
        " FOR NO KEY UPDATE",
        [look.tenant_id, look.account, look.payment_ref],
    )
    return bool(balance) and keep_provider_external(balance[0][0], sum(r.amount.minor for r in unnamed))


def _open_external(look: Look, refund: ProviderRefund, seen: Observation) -> None:
    """One case a refund, ever: an acknowledged one is not asked about again."""
    matter = f"{look.account}:{refund.ref}"
    known = rows.run(  # a statement may have shown the same refund first
        "SELECT 1 FROM runtime_app_case WHERE tenant_id = %s AND dedup_key = ANY(%s)",
        [look.tenant_id, [f"{name}:{matter}"[:300] for name in ("EXTERNAL_REFUND", "MISSING_HERE")]],
    )
    if known:
        return
    case = OpenCase(
        "EXTERNAL_REFUND", look.account, look.payment_ref, _order_of(look), None, refund.amount.minor,
        refund.amount.currency, why="The provider shows a refund of this payment that nobody asked for here.",
        details={"refunds": [one | {"operation_ref": refund.operation_ref} for one in listed((refund,))]},
        matter=matter,
    )
    _store(look, case, "external_refund", seen)


def _open_disagreement(look: Look, why: str, shown: Shown) -> None:
    """A case, unless a person has said of exactly these figures that they are right."""
    off, explained = ({}, False) if shown.total is None else compared(
        look.tenant_id, look.account, look.payment_ref, captured_minor=shown.total.captured.minor,
        refunded_minor=shown.total.refunded.minor,
    )
    if explained:
        return
    case = OpenCase(
        "BALANCE_DISAGREES", look.account, look.payment_ref, _order_of(look), why=why,
        details={"differs": off} if off else {}, matter=f"{look.account}:{look.payment_ref}",
    )
    _store(look, case, "does_not_add_up", shown.seen)


def _store(look: Look, case: OpenCase, finding: str, seen: Observation) -> None:
    now = rows.run("SELECT runtime_now()")[0][0]
    case_id = case.store(tenant_id=look.tenant_id, task_id=None, now=now)
    if case_id is not None:
        store_evidence(
            tenant_id=look.tenant_id, now=now, kind="provider_query", finding=finding, seen=seen, case_id=case_id
        )


def _order_of(look: Look) -> str:
    found = rows.run(
        "SELECT order_ref FROM runtime_app_balance WHERE tenant_id = %s AND account = %s AND payment_ref = %s",
        [look.tenant_id, look.account, look.payment_ref],
    )
    return str(found[0][0]) if found else ""


def _ask_anew(look: Look, actor: str) -> None:
    """What was refunded outside of us is a material fact: whatever was agreed on before it was known is asked anew."""
    why = "The provider shows a refund of this payment that was made outside of us."
    found = rows.run(
        "SELECT id, revision, status FROM runtime_app_task WHERE tenant_id = %s AND payment_ref = %s"
        " AND workflow = 'refund' AND status IN ('waiting_approval', 'ready')",
        [look.tenant_id, look.payment_ref],
    )
    for id, revision, status in found:
        held = (Say("hold.released"),) if status == Status.READY else ()
        transition = Transition(
            to=Status.QUEUED, due=NOW, parts=(EndHold(consumed=False), CloseApprovals("superseded", why)),
            events=(Say("approval.superseded", {"why": why, "changed": ["external_minor"]}), *held,
                    Say("task.judged_anew", {"why": why})),
        )
        # One that has moved on meanwhile is judged by its own next step, against the balance as it is now.
        apply_one(Guard(id, revision, Status(status)), transition, actor=actor)
