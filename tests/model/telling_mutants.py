"""Ways to get notices wrong. Each must be found out, or the model would not notice when the product does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from runtime_app.reconciliation.table import ROWS, Row, Situation, Verdict
from tests.model.telling import PENDING, SUCCEEDED, Hearing, Story, Telling

LAST_WORD = "told that it"  # … something, it rests as something else
PROOFLESS, ILLEGAL = "rests on no answer", "illegal move"
BACK = "illegal move of the operation from succeeded to pending"
COUNTS = "the balance counts"
AT_ONCE, ONE, LATE = Story(), Story(faults=1), Story(faults=2, wished=True)


@dataclass(frozen=True, slots=True)
class Mutant:
    """`breaks` is in the words of what is found."""

    name: str
    hearing: Hearing
    breaks: str
    first: str = PENDING
    named: bool = True
    begins: Story = AT_ONCE
    rows: tuple[Row, ...] = ROWS

    @property
    def telling(self) -> Telling:
        return Telling(self.hearing, self.first, self.named)


def _without(number: int, holds: Callable[[Row], bool] = lambda row: True) -> tuple[Row, ...]:
    """The product's rows, where a row of this number lets the proved outcome stand."""
    return tuple(
        replace(row, verdict=Verdict.STANDS) if row.number == number and holds(row) else row for row in ROWS)


def _blind_to_what_ended() -> tuple[Row, ...]:
    """The product's rows for outcomes in doubt, used for every look."""

    def at_any_time(row: Row) -> Row:
        return replace(row, holds=lambda s: row.holds(Situation(s.finding, cancel_wished=s.cancel_wished)))

    return tuple(at_any_time(row) for row in ROWS if row.number not in {22, 23, 24})


MUTANTS = (
    Mutant("a notice sets the state by itself", Hearing(notice_is="end"), PROOFLESS),
    Mutant("an older notice moves it back", Hearing(notice_is="state"), BACK, begins=ONE),
    Mutant("a failure notice after completed is ignored", Hearing(after_the_end="ignored"), LAST_WORD, SUCCEEDED),
    Mutant("a notice without a signature counts", Hearing(signature=False), LAST_WORD, SUCCEEDED,
           begins=Story(forgeries=1)),
    Mutant("answered before it is stored", Hearing(answered="before"), LAST_WORD, begins=ONE),
    Mutant("one notice an operation, the others are known already", Hearing(known_by="operation"), LAST_WORD),
    Mutant("a notice is used up while a worker has the task", Hearing(busy="used_up"), LAST_WORD),
    Mutant("a notice of what is not known yet is dropped", Hearing(unnamed="dropped"), LAST_WORD, named=False),
    Mutant("two looks follow the same truth", Hearing(follow_is_guarded=False), COUNTS, SUCCEEDED, begins=LATE),
    Mutant("a late truth is not looked at once more", Hearing(looks_once_more=False), LAST_WORD, SUCCEEDED,
           begins=LATE),
    Mutant("a look that was told nothing uses up the hint", Hearing(told_nothing="used_up"), LAST_WORD, SUCCEEDED,
           begins=ONE),
    Mutant("a look that dies uses up the hint", Hearing(look_that_dies="used_up"), LAST_WORD, SUCCEEDED, begins=ONE),
    Mutant("a proved outcome is judged as if it were in doubt", Hearing(looks_as_if_open=True), ILLEGAL, SUCCEEDED),
    Mutant("the rows of what is proved are missing", Hearing(), LAST_WORD, SUCCEEDED, rows=_blind_to_what_ended()),
    Mutant("the task follows a late execution", Hearing(task_follows=True), ILLEGAL, SUCCEEDED, begins=LATE),
    Mutant("the task follows a return", Hearing(task_follows=True), ILLEGAL, SUCCEEDED),
    Mutant("a late execution is not booked", Hearing(late_is_booked=False), COUNTS, SUCCEEDED, begins=LATE),
    Mutant("a return is not booked", Hearing(return_is_booked=False), COUNTS, SUCCEEDED),
    Mutant("row 24 lets a return stand", Hearing(), LAST_WORD, SUCCEEDED, rows=_without(24)),
    Mutant("row 23 lets a late execution stand", Hearing(), LAST_WORD, SUCCEEDED, begins=LATE,
           rows=_without(23, lambda row: row.finding == "found_succeeded")),
)
