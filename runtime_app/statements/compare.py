"""Comparing a day: every line gets its class, and every operation that no line shows is looked at.

What a run finds it finds again: a line is compared anew for as long as its class may change, and a case is opened once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db.models import Count

from runtime_app import rows
from runtime_app.bell import ring
from runtime_app.models import Account, Operation, StatementDay, StatementLine
from runtime_app.reconciliation.classify import QUIET, Conclusion, Then, classify, classify_unseen
from runtime_app.statements import acts, calendar, completeness, gathering, matching, opening, prove, unseen
from runtime_app.statements.gathering import Gathered
from runtime_app.statements.storing import DUPLICATE
from runtime_app.states import OperationState
from runtime_app.timing import Timing
from runtime_app.workflows.types import Ports


@dataclass(frozen=True, slots=True)
class Compared:
    """`waits`: something may still change by itself; `missing`: operations of the day that no line shows yet."""

    waits: bool
    missing: bool


def run(day: StatementDay, *, actor: str, ports: Ports | None = None, timing: Timing | None = None) -> Compared:
    """Compare what came in for this day. With `ports`, a line can stand for a provider that cannot be asked."""
    timing = timing or (ports.timing if ports else settings.TIMING)
    day = StatementDay.objects.select_related("account").get(id=day.id)
    waits = _compare_lines(day, day.account, actor, ports, timing)
    missing = _compare_operations(day, day.account, actor, timing) if day.state == "open" else False
    if day.state == "open":
        trouble = completeness.judge(day)
        if trouble != completeness.NOT_YET:  # until something came, the row says why nothing did
            StatementDay.objects.filter(id=day.id, state="open").update(trouble=trouble)
    return Compared(waits or missing, missing)


def classes(day: StatementDay) -> Mapping[str, int]:
    """The day's lines by class; a note about a line that was told again counts beside them."""
    lines = StatementLine.objects.filter(day=day)
    found = lines.values_list("class_name").annotate(n=Count("id")).order_by("class_name")
    told_again = lines.filter(note__startswith=DUPLICATE).count()
    return dict(found) | ({DUPLICATE: told_again} if told_again else {})


def _compare_lines(day: StatementDay, account: Account, actor: str, ports: Ports | None, timing: Timing) -> bool:
    lines = list(
        StatementLine.objects.filter(day=day).exclude(class_name__in=QUIET).exclude(case__state="closed")
        .select_related("statement", "case").order_by("occurred_at", "ref")
    )
    if not lines:
        return False
    gathering.link(account, day, lines, matching.name(account, lines))
    gathered = gathering.gather(account, day, lines, timing)
    concluded = {line.id: classify(gathered.facts[line.id]) for line in lines}
    lanes = set()
    cases: dict[UUID, UUID] = {}
    for line in lines:
        conclusion, operation = concluded[line.id], gathered.operations.get(line.id)
        match conclusion.then:
            case Then.ASK if operation is not None:
                first = line.class_name != conclusion.class_name
                lanes.add(acts.ask_operation(operation, line, day, actor=actor, first=first))
            case Then.ASK_PAYMENT:
                acts.ask_payment(account, line)
                lanes.add("default")
            case Then.PROVE if operation is not None and ports is not None:
                prove.by_lines(operation, ports, actor=actor)
            case Then.RECORDED | Then.OPEN:
                cases[line.id] = _case_of(line, day, account, operation, conclusion, gathered, actor)
    _write(lines, concluded, cases)
    for lane in sorted(lanes):
        ring(lane)
    return any(c.then not in {Then.SETTLED, Then.RECORDED, Then.OPEN} for c in concluded.values())


def _case_of(
    line: StatementLine, day: StatementDay, account: Account, operation: Operation | None, conclusion: Conclusion,
    gathered: Gathered, actor: str,
) -> UUID:
    recorded = gathered.cases.get((line.id, conclusion.case))
    if recorded is not None:
        return recorded
    suggestions = matching.suggest_operations(line, gathered.unshown()) if operation is None else []
    seen = gathering.seen(line, day)
    matter = opening.of_line(account, day, line, operation, conclusion.case, suggestions, seen)
    return opening.ensure(matter, actor=actor)


def _write(
    lines: list[StatementLine], concluded: Mapping[UUID, Conclusion], cases: Mapping[UUID, UUID]
) -> None:
    values = [(line.id, concluded[line.id].class_name, cases.get(line.id)) for line in lines]
    rows.run(
        "UPDATE runtime_app_statementline AS l SET class_name = w.class, case_id = coalesce(w.case_id, l.case_id),"
        " compared_at = runtime_now() FROM unnest(%s::uuid[], %s::text[], %s::uuid[]) AS w(id, class, case_id)"
        " WHERE l.id = w.id",
        [list(column) for column in zip(*values, strict=True)],
    )


def _compare_operations(day: StatementDay, account: Account, actor: str, timing: Timing) -> bool:
    """Whether operations of the day are still to be shown by a line."""
    overdue = calendar.is_overdue(account, day.day, timing)
    covered = overdue and unseen.is_covered(account, day.day, timing)
    missing = False
    for operation in unseen.operations(account, day.day):
        conclusion = classify_unseen(OperationState(operation.state), overdue=overdue, covered=covered)
        if conclusion is None:
            continue
        if conclusion.then == Then.OPEN:
            suggestions = matching.suggest_lines(account, operation)
            opening.ensure(
                opening.of_operation(account, day, operation, conclusion.case, suggestions), actor=actor
            )
        else:
            missing = True
    return missing
