"""Statement days as a list tells them, with a fixed number of questions for a whole page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q

from runtime_app.console.tags import money_words
from runtime_app.models import Case, Statement, StatementDay, StatementLine
from runtime_app.reconciliation.classify import QUIET


@dataclass(frozen=True, slots=True)
class DayRow:
    """`unmatched`: lines that are more than accounted for. `differences`: of a closed day, by currency, in words."""

    day: StatementDay
    statements: int
    lines: int
    unmatched: int
    cases: int
    differences: tuple[str, ...]


def listed(days: list[StatementDay]) -> list[DayRow]:
    taken = dict(Statement.objects.filter(day__in=days).order_by().values_list("day").annotate(n=Count("id")))
    quiet = Q(class_name__in=sorted(QUIET))
    lines: dict[UUID, tuple[int, int]] = {
        day: (number, loud) for day, number, loud in
        StatementLine.objects.filter(day__in=days).order_by().values_list("day")
        .annotate(n=Count("id"), loud=Count("id", filter=~quiet))
    }
    cases = dict(
        Case.objects.filter(lines__day__in=days, state="open").order_by().values_list("lines__day")
        .annotate(n=Count("id", distinct=True))
    )
    return [
        DayRow(day, taken.get(day.pk, 0), *lines.get(day.pk, (0, 0)), cases.get(day.pk, 0), tuple(_kept(day)))
        for day in days
    ]


def _kept(day: StatementDay) -> Iterable[str]:
    """What was kept of a closed day."""
    for total in day.totals.get("currencies", []) if day.state == "closed" else []:
        if total["difference_minor"]:
            yield money_words(total["difference_minor"], total["currency"])
