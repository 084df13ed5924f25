"""The rows of the reconciliation queue, put together with a fixed number of questions for a whole page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from runtime_app import accounts, jobs
from runtime_app.console import seen, words
from runtime_app.models import Call, Case, Operation, Tenant, User
from runtime_app.states import UNRESOLVED

_NEAR = timedelta(hours=4)


@dataclass(frozen=True, slots=True)
class Window:
    """How long the same request may still be sent again under its key. `left` is None when it may not, for `why`."""

    left: timedelta | None = None
    why: str = ""

    @property
    def near(self) -> bool:
        return self.left is not None and self.left <= _NEAR


@dataclass(frozen=True, slots=True)
class Seen:
    """What was done about one operation so far: the last answer in words, how often it was sent."""

    result: str = ""
    sends: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    operation: Operation | None
    case: Case | None
    age: timedelta
    seen: Seen
    window: Window
    cancel_wished: bool
    overdue: bool
    mine: bool


def of_outcomes(person: User, tenant: Tenant, operations: list[Operation], now: datetime) -> list[Row]:
    """Each operation with the gravest of its open cases."""
    gravest: dict[UUID | None, Case] = {}
    for case in Case.objects.filter(operation__in=operations, state="open").select_related("owner"):
        known = gravest.get(case.operation_id)
        if known is None or _weight(case) < _weight(known):
            gravest[case.operation_id] = case
    calls, windows = of_calls(operations), key_windows(tenant)
    return [_row(person, o, gravest.get(o.id), calls, windows, o.first_submit_at or o.created_at, now)
            for o in operations]


def of_cases(person: User, tenant: Tenant, cases: list[Case], now: datetime) -> list[Row]:
    calls, windows = of_calls([c.operation for c in cases if c.operation is not None]), key_windows(tenant)
    return [_row(person, c.operation, c, calls, windows, c.opened_at, now) for c in cases]


def _weight(case: Case) -> tuple[int, datetime]:
    return ("critical", "high", "normal").index(case.severity), case.deadline_at


def _row(
    person: User, operation: Operation | None, case: Case | None, calls: Mapping[UUID, Seen],
    windows: Mapping[str, float | None], since: datetime, now: datetime,
) -> Row:
    end = case.closed_at if case is not None and case.closed_at else now
    return Row(
        operation=operation, case=case, age=end - since,
        seen=calls.get(operation.id, Seen()) if operation else Seen(),
        window=key_window(operation, windows, now) if operation else Window(),
        cancel_wished=operation is not None and operation.task.cancel_wished_at is not None,
        overdue=case is not None and case.state == "open" and case.deadline_at <= now,
        mine=case is not None and case.owner_id == person.pk,
    )


def of_calls(operations: Iterable[Operation]) -> dict[UUID, Seen]:
    by_id = {o.id: o for o in operations}
    calls = Call.objects.filter(operation__in=list(by_id))
    ended = calls.filter(ended_at__isnull=False).order_by("operation", "-started_at", "-id").distinct("operation")
    last = dict(ended.values_list("operation", "finding"))
    sent = calls.order_by().values_list("operation").annotate(n=Count("id", filter=Q(kind__in=("submit", "resend"))))
    return {id: Seen(result(last.get(id), by_id[id].absents), number) for id, number in sent}


def result(finding: str | None, absents: int) -> str:
    """The last result in a word or two; absences that count are counted."""
    if not finding:
        return ""
    stage, _colon, _cause = seen.code(finding).partition(": ")
    said = str(words.RESULT.get(stage, finding))
    return _("%(result)s \u00d7%(n)s") % {"result": said, "n": absents} if finding == "absent" and absents > 1 else said


def key_windows(tenant: Tenant) -> dict[str, float | None]:
    """Seconds for which each account's provider keeps to a key; None where it promises nothing."""
    return {ref: promise.key_window for ref, promise in accounts.promises(tenant.id).items()}


def key_window(operation: Operation, windows: Mapping[str, float | None], now: datetime) -> Window:
    timing, length = jobs.ports().timing, windows.get(operation.account)
    if operation.state not in UNRESOLVED or operation.first_submit_at is None:
        return Window()
    if length is None:
        return Window(why=_("no key window"))
    if operation.resend_disabled or operation.resends >= timing.resend_most:
        return Window(why=_("no repeats left"))
    left = operation.first_submit_at + timedelta(seconds=length - timing.key_margin) - now
    return Window(left) if left > timedelta() else Window(why=_("closed"))
