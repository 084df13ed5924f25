"""A day as a person sees it before closing it, and the digest of exactly that."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet, Sum

from runtime_app import rows
from runtime_app.chronicle import canonical
from runtime_app.models import Account, Case, Operation, Statement, StatementDay, StatementLine
from runtime_app.reconciliation.classify import QUIET, SAYS
from runtime_app.statements import calendar, completeness, unseen
from runtime_app.statements.storing import DUPLICATE
from runtime_app.states import UNRESOLVED, OperationState

SHOWN_MOST = 200
_DONE = frozenset({OperationState.SUCCEEDED, OperationState.RETURNED})


@dataclass(frozen=True, slots=True)
class Total:
    """In minor units. `theirs`: what went out on statements for the day's operations, on whatever day it was booked,
    and what was booked on the day and is nobody's; `back`: what came in of it."""

    currency: str
    ours_minor: int
    theirs_minor: int
    back_minor: int

    @property
    def difference_minor(self) -> int:
        return self.theirs_minor - self.ours_minor

    def as_data(self) -> dict[str, Any]:
        return {"currency": self.currency, "ours_minor": self.ours_minor, "theirs_minor": self.theirs_minor,
                "back_minor": self.back_minor, "difference_minor": self.difference_minor}


@dataclass(frozen=True, slots=True)
class LineShown:
    line: StatementLine
    says: str
    suggestions: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class OperationShown:
    """`class_name`: TIMING, IN_DOUBT or MISSING_AT_PROVIDER."""

    operation: Operation
    class_name: str
    says: str
    case: Case | None


@dataclass(frozen=True, slots=True)
class Overview:
    """`stops`: why it cannot be closed, in sentences; empty when it can. `sha256`: the digest of all that counts."""

    day: StatementDay
    account: Account
    completeness: str  # complete | incomplete | none
    trouble: str
    statements: tuple[Statement, ...]
    totals: tuple[Total, ...]
    classes: tuple[tuple[str, int], ...]
    lines: tuple[LineShown, ...]
    operations: tuple[OperationShown, ...]
    cases: tuple[Case, ...]
    stops: tuple[str, ...]
    lines_count: int
    operations_count: int
    after_closing: int
    sha256: str

    def closing_totals(self) -> dict[str, Any]:
        """What is kept of a day that is closed as this."""
        return {
            "currencies": [t.as_data() for t in self.totals], "classes": dict(self.classes), "sha256": self.sha256,
            "cases": [{"id": str(c.id), "class_name": c.class_name} for c in self.cases],
            "lines": self.lines_count, "operations": self.operations_count,
        }


class _Flat(NamedTuple):
    """What counts of a line; a day may have tens of thousands."""

    ref: str
    class_name: str
    case_id: UUID | None
    operation_id: UUID | None
    amount_minor: int
    currency: str
    note: str
    taken_at: datetime


def read(day: StatementDay) -> Overview:
    """The day as it is in the database; nothing is compared or written."""
    account = day.account
    statements = tuple(Statement.objects.filter(day=day).order_by("taken_at", "id"))
    trouble = completeness.judge(day)
    if not statements and day.trouble:
        trouble = day.trouble
    lines = _flat(day)
    hidden = unseen.operations(account, day.day)
    in_doubt = unseen.of_day(account, day.day).filter(state__in=UNRESOLVED).exclude(id__in=[o.id for o in hidden])
    cases = _cases(day, lines)
    shown = [_operation(o, cases) for o in [*hidden, *in_doubt.select_related("task")]]
    totals = tuple(_totals(day, lines))
    open_cases = tuple(case for case in cases if case.state == "open")
    return Overview(
        day=day, account=account, trouble=trouble, statements=statements, totals=totals,
        completeness="none" if not statements else "incomplete" if trouble else "complete",
        classes=tuple(sorted(_classes(lines).items())), stops=tuple(_stops(trouble, lines, shown, cases)),
        cases=open_cases, lines=tuple(_line(line, day) for line in _told(day)), operations=tuple(shown[:SHOWN_MOST]),
        lines_count=len(lines), operations_count=unseen.of_day(account, day.day).count(),
        after_closing=sum(day.closed_at is not None and n.taken_at > day.closed_at for n in lines),
        sha256=_digest(day, trouble, statements, lines, shown, open_cases, totals),
    )


def mark(day: StatementDay) -> str:
    """One statement's digest of everything that `read` reads: two equal ones say that nothing changed between."""
    start, end = calendar.window(day.account, day.day)
    found = rows.run(_MARK, [day.id, day.id, day.account_id, day.tenant_id, day.account.ref, start, end, day.id])
    return str(found[0][0])


_MARK = """
SELECT md5(concat_ws('|',
  (SELECT md5(string_agg(concat_ws(',', l.ref, l.class_name, l.case_id, c.state, l.operation_id), ';' ORDER BY l.id))
   FROM runtime_app_statementline l LEFT JOIN runtime_app_case c ON c.id = l.case_id WHERE l.day_id = %s),
  (SELECT state || trouble FROM runtime_app_statementday WHERE id = %s),
  (SELECT concat_ws(',', count(*), max(s.taken_at)) FROM runtime_app_statement s
   JOIN runtime_app_statementday d ON d.id = s.day_id WHERE d.account_id = %s),
  (SELECT md5(string_agg(concat_ws(',', o.id, o.state,
     (SELECT string_agg(c.id || c.state, ',' ORDER BY c.id) FROM runtime_app_case c WHERE c.operation_id = o.id),
     (SELECT count(*) FROM runtime_app_statementline n WHERE n.operation_id = o.id)), ';' ORDER BY o.id))
   FROM runtime_app_operation o WHERE o.tenant_id = %s AND o.account = %s AND o.first_submit_at >= %s
   AND o.first_submit_at < %s),
  (SELECT string_agg(c.id || c.state, ',' ORDER BY c.id) FROM runtime_app_case c WHERE c.state = 'open'
   AND c.operation_id IN (SELECT operation_id FROM runtime_app_statementline WHERE day_id = %s))
))
"""


def _flat(day: StatementDay) -> list[_Flat]:
    names = [name if name != "taken_at" else "statement__taken_at" for name in _Flat._fields]
    found = StatementLine.objects.filter(day=day).order_by("occurred_at", "ref").values_list(*names)
    return [_Flat(*row) for row in found]


def _told(day: StatementDay) -> QuerySet[StatementLine]:
    """The lines of which there is something to say."""
    told = StatementLine.objects.filter(day=day).exclude(class_name__in=QUIET, note="")
    return told.select_related("operation", "case").order_by("occurred_at", "ref")[:SHOWN_MOST]


def _classes(lines: Iterable[_Flat]) -> Counter[str]:
    told_again = sum(line.note.startswith(DUPLICATE) for line in lines)
    return Counter(line.class_name for line in lines) + Counter({DUPLICATE: told_again})


def _line(line: StatementLine, day: StatementDay) -> LineShown:
    says = SAYS.get(line.class_name, "It is not compared yet.")
    sent = line.operation.first_submit_at if line.operation else None
    if sent is not None and (own := calendar.today(day.account, sent)) != day.day:
        says += f" The operation is of {own}."
    found = line.case.details.get("suggestions", []) if line.case else []
    return LineShown(line, f"{says} {line.note}".strip(), tuple(found))


def _operation(operation: Operation, cases: Iterable[Case]) -> OperationShown:
    own = [case for case in cases if case.operation_id == operation.id]
    missing = next((case for case in own if case.class_name == "MISSING_AT_PROVIDER"), None)
    if operation.state in UNRESOLVED:
        name, case = "IN_DOUBT", next((c for c in own if c.state == "open"), None)
    else:
        name, case = ("MISSING_AT_PROVIDER" if missing else "TIMING"), missing
    return OperationShown(operation, name, SAYS[name], case)


def _cases(day: StatementDay, lines: Iterable[_Flat]) -> list[Case]:
    """Cases of the day's lines and of its operations, closed ones too."""
    owners = {n.operation_id for n in lines if n.operation_id is not None and n.class_name not in QUIET}
    ours = unseen.of_day(day.account, day.day).values("id")
    ids = StatementLine.objects.filter(day=day, case__isnull=False).values("case_id")
    wanted = Q(id__in=ids) | Q(operation_id__in=ours) | Q(operation_id__in=owners)
    return list(Case.objects.filter(wanted).order_by("opened_at", "id"))


def _totals(day: StatementDay, lines: Iterable[_Flat]) -> Iterable[Total]:
    ours: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    back: Counter[str] = Counter()
    of_day = unseen.of_day(day.account, day.day)
    for currency, minor in of_day.filter(state__in=_DONE).values_list("currency").annotate(n=Sum("amount_minor")):
        ours[currency] += minor
    shown = StatementLine.objects.filter(operation__in=of_day.values("id")).values_list("currency", "amount_minor")
    nobodys = [(n.currency, n.amount_minor) for n in lines
               if n.operation_id is None and n.class_name not in {"OTHER", "DISPUTED"}]
    for currency, minor in [*shown, *nobodys]:
        if minor < 0:
            theirs[currency] -= minor
        else:
            back[currency] += minor
    for currency in sorted(ours.keys() | theirs.keys() | back.keys()):
        yield Total(currency, ours[currency], theirs[currency], back[currency])


def _stops(
    trouble: str, lines: Iterable[_Flat], shown: Iterable[OperationShown], cases: Iterable[Case]
) -> Iterable[str]:
    """Everything that is neither accounted for nor in an open case."""
    told = {case.operation_id for case in cases if case.state == "open" and case.operation_id is not None}
    if trouble:
        yield trouble
    for line in lines:
        if line.class_name in QUIET or line.case_id is not None or (line.operation_id in told and line.class_name):
            continue
        yield f"Line {line.ref}: {SAYS.get(line.class_name, 'It is not compared yet.')}"
    for each in shown:
        if each.case is None and each.operation.id not in told:
            yield f"Refund {each.operation.id} of {each.operation.payment_ref}: {each.says}"


def _digest(
    day: StatementDay, trouble: str, statements: Iterable[Statement], lines: Iterable[_Flat],
    shown: Iterable[OperationShown], cases: Iterable[Case], totals: Iterable[Total],
) -> str:
    seen = {
        "day": str(day.id), "state": day.state, "trouble": trouble, "statements": [s.sha256 for s in statements],
        "lines": [[n.ref, n.class_name, str(n.case_id), str(n.operation_id)] for n in lines],
        "operations": [[str(s.operation.id), s.operation.state, s.class_name] for s in shown],
        "cases": [str(c.id) for c in cases], "totals": [t.as_data() for t in totals],
    }
    return hashlib.sha256(canonical(seen).encode()).hexdigest()
