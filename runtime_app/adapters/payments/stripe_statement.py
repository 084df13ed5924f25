"""A day of a Stripe account: its balance transactions, all pages of them, as statement lines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

from runtime_app.adapters.payments.days import day_window
from runtime_app.adapters.payments.stripe_lines import read_line
from runtime_app.adapters.payments.stripe_lists import PAGE_SIZE, PAGES_MOST, Page, read_entries
from runtime_app.adapters.payments.stripe_objects import Garbled
from runtime_app.adapters.payments.types import BadStatement, Inconclusive, Observation, Statement, StatementLine


def read_day(page: Page, day: date, zone: ZoneInfo, *, filtered: bool) -> Statement | BadStatement | Inconclusive:
    """Read newest first until there is no more, or, where the server cannot filter by time, until before the day.

    A first page that fails is Inconclusive. What fails later, or does not add up, is the statement's trouble; a line
    that cannot be read refuses the whole.
    """
    reading = _Reading(*day_window(day, zone), zone, filtered)
    after: str | None = None
    for number in range(1, PAGES_MOST + 1):
        answer = page(after)
        reading.seen = replace(answer.seen, pages=number)
        entries = read_entries(answer)
        if isinstance(entries, str):
            if number == 1:
                return Inconclusive(entries, replace(answer.seen, complete=False))
            reading.troubles.append(f"Page {number} was not read: {entries}.")
            break
        try:
            followed = reading.add(entries.data, (answer.ok or {}).get("total_count"))
        except Garbled as garbled:
            return BadStatement(f"The statement has a line that cannot be read: {garbled}.")
        if not followed:
            reading.troubles.append(f"Page {number} repeats the pages before it.")
        if not followed or not entries.more or reading.past():
            break
        after = reading.last
    else:
        reading.troubles.append(f"The day has more than {PAGES_MOST} pages.")
    return reading.told(day)


def day_params(day: date, zone: ZoneInfo, *, filtered: bool) -> dict[str, object]:
    """What to ask for. Sources are expanded, for only they carry the operation's id. A count without a filter would be
    of the whole account, and of no use.
    """
    params: dict[str, object] = {"limit": PAGE_SIZE, "expand": ["data.source"]}
    if not filtered:
        return params
    start, end = day_window(day, zone)
    return params | {
        "created[gte]": int(start.timestamp()), "created[lt]": int(end.timestamp()), "include": ["total_count"],
    }


@dataclass(slots=True)
class _Reading:
    start: datetime
    end: datetime
    zone: ZoneInfo
    filtered: bool
    lines: list[StatementLine] = field(default_factory=list)
    refs: set[str] = field(default_factory=set)
    count: int | None = None
    troubles: list[str] = field(default_factory=list)
    seen: Observation | None = None
    last: str = ""
    oldest: datetime | None = None

    def add(self, data: Sequence[object], count: object) -> bool:
        """Take a page; False when it holds nothing but what was there before."""
        lines = [read_line(entry, self.zone) for entry in data]
        fresh = not lines or any(line.ref not in self.refs for line in lines)
        for line in lines:
            inside = self.start <= line.occurred_at < self.end
            if inside or self.filtered:
                self.lines.append(line)
            if not inside and self.filtered:
                self.troubles.append(f"Line {line.ref} is of another day.")
        self.refs |= {line.ref for line in lines}
        if self.filtered and type(count) is int:
            self.count = count
        if lines:
            self.last, self.oldest = lines[-1].ref, lines[-1].occurred_at
        return fresh

    def past(self) -> bool:
        return not self.filtered and self.oldest is not None and self.oldest < self.start

    def told(self, day: date) -> Statement:
        distinct = {line.ref: line for line in self.lines}
        if any(distinct[line.ref] != line for line in self.lines):
            self.troubles.append("Two lines have one reference and differ.")
        if self.count is not None and self.count not in (len(distinct), len(self.lines)):
            self.troubles.append(f"The provider counts {self.count} lines and lists {len(distinct)}.")
        trouble = " ".join(self.troubles[:5])
        seen = replace(self.seen, complete=not trouble) if self.seen is not None else None
        return Statement(day, tuple(self.lines), _digest(self.lines, self.count, trouble), "list",
                         count_told=self.count, trouble=trouble, seen=seen)


def _digest(lines: Sequence[StatementLine], count: int | None, trouble: str) -> str:
    """Over what the lines say, so that a day read twice is the same although the server's bodies differ."""
    said = [[line.ref, line.kind, str(line.amount), line.occurred_at.isoformat(), line.provider_ref, line.our_ref,
             line.payment_ref, str(line.settled_on), str(line.fee), line.live, str(line.booked)] for line in lines]
    return hashlib.sha256(json.dumps([said, count, trouble]).encode()).hexdigest()
