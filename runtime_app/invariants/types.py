"""What an invariant is: a name, what it promises, and a query for the rows that break it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Invariant:
    """`query` returns (what breaks it, how) for each row that does; nothing when all is well."""

    name: str
    says: str
    query: str


@dataclass(frozen=True, slots=True)
class Violation:
    """One row that breaks an invariant. `subject` names the row, `detail` says what is wrong with it."""

    invariant: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.subject}: {self.detail}"


# A recorded case of one of these classes says that people know of money that moved otherwise than the task says.
KNOWN_TO_PEOPLE = "^(LATE|RETURNED|DUPLICATE|EXCESS)"


# SQL of a case `c` that does: it is of such a class, or people have accepted in it what happened instead.
KNOWN_CASE = f"(c.class_name ~ '{KNOWN_TO_PEOPLE}' OR c.outcome = 'recorded_as_found')"


def listed(values: Iterable[str]) -> str:
    """These values, which are our own and plain words, as an SQL list."""
    return "(" + ", ".join(f"'{value}'" for value in sorted(values)) + ")"


def excused(task: str, operation: str | None = None) -> str:
    """SQL that is true when a case is recorded for the task, or for this or any operation of it."""
    whose = f"c.task_id = {task}.id" if operation is None else f"c.operation_id = {operation}.id"
    known = f"EXISTS (SELECT 1 FROM runtime_app_case c WHERE {whose} AND {KNOWN_CASE})"
    return f"(coalesce({task}.attention ~ '{KNOWN_TO_PEOPLE}', false) OR {known})"
