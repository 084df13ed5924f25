"""A day as a person sees it before closing it, and the digest of exactly that."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

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


def read(day: StatementDay) -> Overview:
    """The day as it is in the database; nothing is compared or written."""
    account = day.account
    statements = tuple(Statement.objects.filter(day=day).order_by("taken_at", "id"))
    trouble = completeness.judge(day)
    if not statements and day.trouble:
        trouble = day.trouble
    lines = list(
        StatementLine.objects.filter(day=day).select_related("operation", "case", "statement")
        .order_by("occurred_at", "ref")
    )
    operations = list(unseen.of_day(account, day.day).order_by("first_submit_at", "id"))
    hidden = {o.id: o for o in unseen.operations(account, day.day)}
    cases = _cases(lines, operations)
    shown = [_operation(o, cases) for o in operations if o.id in hidden or o.state in UNRESOLVED]
    totals = tuple(_totals(lines, operations))
    stops = tuple(_stops(trouble, lines, shown, cases))
    open_cases = tuple(case for case in cases if case.state == "open")
    return Overview(
        day=day, account=account, trouble=trouble, statements=statements, totals=totals,
        completeness="none" if not statements else "incomplete" if trouble else "complete",
        classes=tuple(sorted(_classes(lines).items())), stops=stops, cases=open_cases,
        lines=tuple(_line(line, day) for line in lines if not _is_quiet(line))[:SHOWN_MOST],
        operations=tuple(shown[:SHOWN_MOST]), lines_count=len(lines), operations_count=len(operations),
        after_closing=sum(day.closed_at is not None and n.statement.taken_at > day.closed_at for n in lines),
        sha256=_digest(day, trouble, statements, lines, shown, open_cases, totals),
    )


def _is_quiet(line: StatementLine) -> bool:
    return line.class_name in QUIET and not line.note


def _classes(lines: Iterable[StatementLine]) -> Counter[str]:
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


def _cases(lines: Iterable[StatementLine], operations: Iterable[Operation]) -> list[Case]:
    """Cases of the day's lines and of its operations, closed ones too."""
    ids = [line.case_id for line in lines if line.case_id is not None]
    owners = {o.id for o in operations}
    owners |= {n.operation_id for n in lines if n.operation_id is not None and n.class_name not in QUIET}
    return list(Case.objects.filter(Q(id__in=ids) | Q(operation_id__in=owners)).order_by("opened_at", "id"))


def _totals(lines: Iterable[StatementLine], operations: list[Operation]) -> Iterable[Total]:
    ours: dict[str, int] = defaultdict(int)
    theirs: dict[str, int] = defaultdict(int)
    back: dict[str, int] = defaultdict(int)
    for operation in operations:
        ours[operation.currency] += operation.amount_minor if operation.state in _DONE else 0
    elsewhere = StatementLine.objects.filter(operation_id__in=[o.id for o in operations])
    nobodys = [n for n in lines if n.operation_id is None and n.class_name not in {"OTHER", "DISPUTED"}]
    for line in [*elsewhere, *nobodys]:
        if line.amount_minor < 0:
            theirs[line.currency] -= line.amount_minor
        else:
            back[line.currency] += line.amount_minor
    for currency in sorted(ours.keys() | theirs.keys() | back.keys()):
        yield Total(currency, ours[currency], theirs[currency], back[currency])


def _stops(
    trouble: str, lines: Iterable[StatementLine], shown: Iterable[OperationShown], cases: Iterable[Case]
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
    day: StatementDay, trouble: str, statements: Iterable[Statement], lines: Iterable[StatementLine],
    shown: Iterable[OperationShown], cases: Iterable[Case], totals: Iterable[Total],
) -> str:
    seen = {
        "day": str(day.id), "state": day.state, "trouble": trouble, "statements": [s.sha256 for s in statements],
        "lines": [[n.ref, n.class_name, str(n.case_id), str(n.operation_id)] for n in lines],
        "operations": [[str(s.operation.id), s.operation.state, s.class_name] for s in shown],
        "cases": [str(c.id) for c in cases], "totals": [t.as_data() for t in totals],
    }
    return hashlib.sha256(canonical(seen).encode()).hexdigest()
