"""Reads a case's situation. For a page as it is; for a verb under the case's lock, so that what it says still holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from runtime_app import access, rows
from runtime_app.adapters import payments
from runtime_app.adapters.payments.types import Capabilities, ProviderAccount
from runtime_app.desk.declarations import declarations
from runtime_app.desk.digest import CONCLUSIVE, evidence_sha256
from runtime_app.desk.situation import Shown, Situation, Times
from runtime_app.models import (
    Balance,
    Call,
    Case,
    CaseEntry,
    Evidence,
    Operation,
    StatementLine,
    Task,
    User,
)
from runtime_app.states import UNRESOLVED, Status

_EVIDENCE_MOST = 200
_JOINED = ("operation", "operation__task", "task", "task__requester", "account", "owner", "tenant")


def cases(person: User) -> QuerySet[Case]:
    """The cases the person may see."""
    return access.scoped(person, Case.objects.select_related(*_JOINED), "see_reconciliation")


def read(person: User, case_id: object, *, do: str | None = None) -> Situation:
    """The case's situation now. NotFound when it is not there or not the person's to see; Forbidden lacking `do`."""
    case = access.one(person, Case.objects.select_related(*_JOINED), case_id, see="see_reconciliation", do=do)
    return situation(case)


def locked(case_id: UUID) -> Situation:
    """The same under the case's lock, in the caller's transaction."""
    queryset = Case.objects.select_for_update(no_key=True, of=("self",)).select_related(*_JOINED)
    return situation(queryset.get(pk=case_id))


def workers(tenant_id: UUID) -> list[User]:
    """Who may work cases of this tenant, by name."""
    people = User.objects.filter(memberships__tenant_id=tenant_id, is_active=True).order_by("first_name", "username")
    rights = access.rights_of([person.pk for person in people])
    return [person for person in people if (person.pk, tenant_id, "work_reconciliation") in rights]


def situation(case: Case) -> Situation:
    now = rows.run("SELECT runtime_now()")[0][0]
    operation = case.operation
    task = case.task or (operation.task if operation is not None else None)
    evidence, calls = _evidence(case, operation), _calls(operation)
    entries = tuple(CaseEntry.objects.filter(case=case).select_related("person").order_by("at", "id"))
    lines = _lines(case, operation)
    others = _others(case, operation, task)
    shown = _shown(case, entries)
    sends = sum(call.kind in {"submit", "resend"} for call in calls)
    digest = evidence_sha256(
        case, operation, task, sends=sends, shown=[_plain(one) for one in shown], lines=lines, others=others
    )
    declared, outdated = declarations(case, entries, digest)
    looks = [e for e in evidence if e.kind == "provider_query"]
    complete = [e for e in looks if e.complete and e.finding in CONCLUSIVE]
    promised = _capabilities(case, operation)
    return Situation(
        case=case, operation=operation, task=task, balance=_balance(case, operation), capabilities=promised, now=now,
        times=_times(operation, promised, complete[-1] if complete else None), evidence=evidence, calls=calls,
        lines=lines, entries=entries, others=others, shown=shown, last_look=looks[-1] if looks else None,
        last_complete=complete[-1] if complete else None, sends=sends, evidence_sha256=digest,
        absents=operation.absents if operation is not None else 0, declaration=declared, outdated=outdated,
        ask=_ask(entries), follow_up=_follow_up(case), recorded=_recorded(operation),
    )


def _evidence(case: Case, operation: Operation | None) -> tuple[Evidence, ...]:
    mine = Q(case=case) | Q(operation=operation) if operation is not None else Q(case=case)
    newest = Evidence.objects.filter(mine).order_by("-observed_at", "-id")[:_EVIDENCE_MOST]
    return tuple(reversed(newest))


def _calls(operation: Operation | None) -> tuple[Call, ...]:
    if operation is None:
        return ()
    return tuple(Call.objects.filter(operation=operation).order_by("started_at", "id"))


def _lines(case: Case, operation: Operation | None) -> tuple[StatementLine, ...]:
    mine = Q(case=case)
    if operation is not None:
        mine |= Q(operation=operation)
    return tuple(StatementLine.objects.filter(mine).select_related("day").order_by("occurred_at", "id")[:100])


def _others(case: Case, operation: Operation | None, task: Task | None) -> tuple[Case, ...]:
    if task is None:
        return ()
    mine = Q(task=task) | Q(operation=operation) if operation is not None else Q(task=task)
    return tuple(Case.objects.filter(mine, state="open").exclude(pk=case.pk).order_by("opened_at", "id"))


def _shown(case: Case, entries: Sequence[CaseEntry]) -> tuple[Shown, ...]:
    """As the last look that somebody asked for showed it; before that, as it was when the case was opened."""
    told: Any = case.details.get("refunds")
    for entry in entries:
        if entry.kind == "answered" and "refunds" in entry.data:
            told = entry.data["refunds"]
    return tuple(_refund(one) for one in told or ())


def _refund(told: Mapping[str, Any]) -> Shown:
    return Shown(
        str(told["ref"]), str(told["payment_ref"]), int(told["amount_minor"]), str(told["currency"]),
        str(told.get("status", "")),
    )


def _plain(one: Shown) -> dict[str, Any]:
    return {"ref": one.ref, "payment": one.payment_ref, "minor": one.amount_minor, "currency": one.currency,
            "status": one.status}


def _balance(case: Case, operation: Operation | None) -> Balance | None:
    account = operation.account if operation is not None else (case.account.ref if case.account else None)
    if account is None or not case.payment_ref:
        return None
    return Balance.objects.filter(tenant=case.tenant_id, account=account, payment_ref=case.payment_ref).first()


def _capabilities(case: Case, operation: Operation | None) -> Capabilities | None:
    """What the account's provider promises; None when this installation has no such provider any more."""
    if case.account is None or case.account.provider not in payments.PROVIDERS:
        return None
    return _promised(case.account.provider)


@cache
def _promised(provider: str) -> Capabilities:
    timing = settings.TIMING
    built = payments.build(provider, connect_timeout=timing.connect_timeout, read_timeout=timing.read_timeout)
    return built.capabilities(ProviderAccount(id=provider, provider=provider, api_key=""))


def _times(operation: Operation | None, promised: Capabilities | None, look: Evidence | None) -> Times:
    timing = settings.TIMING
    fresh_until = _later(look.observed_at if look is not None else None, timing.look_fresh)
    if operation is None:
        return Times(fresh_until=fresh_until)
    in_flight = timing.max_in_flight
    if promised is not None and promised.max_in_flight is not None:
        in_flight = promised.max_in_flight
    window = (promised.key_window if promised is not None else None) or 0.0
    doubt = operation.state in UNRESOLVED
    return Times(
        horizon_at=_later(operation.last_possible_send_at, in_flight),
        key_window_ends_at=_later(operation.first_submit_at, max(0.0, window - timing.key_margin)) if doubt else None,
        handover_at=_later(operation.first_submit_at, timing.handover) if doubt else None,
        next_look_at=operation.next_check_at, fresh_until=fresh_until,
    )


def _later(then: datetime | None, seconds: float) -> datetime | None:
    return None if then is None else then + timedelta(seconds=seconds)


def _ask(entries: Sequence[CaseEntry]) -> CaseEntry | None:
    """What was asked for last and is not answered yet."""
    last = [e for e in entries if e.kind in {"asked", "answered"}][-1:]
    return last[0] if last and last[0].kind == "asked" else None


def _recorded(operation: Operation | None) -> str:
    """The class of the case in which two people have accepted what happened; empty when there is none."""
    if operation is None:
        return ""
    found = Case.objects.filter(operation=operation, outcome="recorded_as_found").values_list("class_name", flat=True)
    return found.first() or ""


def follow_up_key(case_id: UUID) -> str:
    return f"follow-up:{case_id}"


def _follow_up(case: Case) -> Task | None:
    """The one of this case; else one of another case of the same refund, unless that came to nothing. What is to be
    made good is made good once."""
    mine = Task.objects.filter(tenant=case.tenant_id, request_key=follow_up_key(case.id)).first()
    task_id = case.task_id or (case.operation.task_id if case.operation is not None else None)
    if mine is not None or task_id is None:
        return mine
    nothing = [Status.REJECTED, Status.FAILED, Status.CANCELLED]
    others = Task.objects.filter(tenant=case.tenant_id, order_ref=case.order_ref, state__follows=str(task_id))
    return others.exclude(status__in=nothing).first()
