"""The one writer of a task: status, events and every row that must appear with them, in one durable transaction.

`apply` takes one transition or many. Each is guarded by (id, revision, status, fence); one that lost its guard drops
out alone and is told, and so does one that a part refuses (a balance too small, a sibling in flight). The number of
statements depends on the kinds of rows in the batch, never on its size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, ClassVar, Protocol, Self
from uuid import UUID

from django.db import transaction

from runtime_app import chronicle, rows
from runtime_app.chronicle import Say
from runtime_app.points import point
from runtime_app.states import FINAL, Status, is_legal


@dataclass(frozen=True, slots=True)
class Guard:
    """What must still be so. `fence` is None for a door, which holds no lease."""

    task_id: UUID
    revision: int
    status: Status
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class After:
    """Look again this many seconds from the database's now; After(0) is work to be done at once."""

    seconds: float


NOW = After(0)
NEVER = None


@dataclass(frozen=True, slots=True)
class Locked:
    """A task as it stands under our lock, with the database's time read after the lock was had."""

    id: UUID
    tenant_id: UUID
    revision: int
    status: Status
    fence: int
    event_seq: int
    event_head: bytes
    cancel_wished: bool
    now: datetime
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Part(Protocol):
    """Rows that appear with a transition. Each kind is admitted and written for the whole batch at once, by rank;
    neither is called with nothing."""

    rank: ClassVar[int]  # the order of locks: operations before balances
    survives: ClassVar[bool]  # written even when the guard was lost: what was seen stays seen

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        """Lock what is needed and refuse whom it cannot serve, by task id."""

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None: ...


# The parts of a batch by their kind, in the order of ranks. A kind may have a function `before` of it, which is called
# once, ahead of the first of the kinds that have the same one: they lock rows of one table, and lock them together.
Kinds = list[tuple[type[Part], list[tuple[Locked, Any]]]]


@dataclass(frozen=True, slots=True)
class Transition:
    """What a handler or a door decided.

    `to` None keeps the status. `due` says when to look next (NEVER for a wait without a timer). `columns` are the
    task's own facts that change; `if_wished` are events to add when a cancel wish was recorded meanwhile (a wish moves
    no revision); `facts_changed` says that they are business facts, which move the revision as a
    status does. `then` is an outside effect: it runs after this is committed, with nothing open, and its transition
    is committed next. `lock` names the operation whose sender's lock is to be had before the commit and kept until the
    outcome is recorded. `if_refused` is what to do instead when a part refuses, by the refusal's code; a function is
    given the refusal, for what it says. `starts` is the count of starts without progress from now on; what has an
    effect behind it keeps the count until its outcome is in.
    """

    to: Status | None = None
    events: tuple[Say, ...] = ()
    if_wished: tuple[Say, ...] = ()
    due: After | datetime | None = NOW
    keep_lease: bool = False  # leave lease and due time as they are
    wake: bool = False  # with keep_lease: but look at once if nobody holds a lease
    columns: Mapping[str, Any] = field(default_factory=dict)
    facts_changed: bool = False
    parts: tuple[Part, ...] = ()
    then: Callable[..., Transition] | None = None
    lock: UUID | None = None
    if_refused: Mapping[str, Transition | Callable[[Refusal], Transition]] = field(default_factory=dict)
    starts: int | None = 0  # None keeps the count


@dataclass(frozen=True, slots=True)
class Wanted:
    guard: Guard
    transition: Transition
    actor: str


@dataclass(frozen=True, slots=True)
class Applied:
    task_id: UUID
    guard: Guard
    seq: int
    now: datetime
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lost:
    """The guard no longer holds; `status` and `revision` are the current ones, None for a task that is not there."""

    task_id: UUID
    status: Status | None
    revision: int | None


@dataclass(frozen=True, slots=True)
class Refused:
    task_id: UUID
    refusal: Refusal


Result = Applied | Lost | Refused

# The task's own columns a transition may write, with their SQL types; everything else about a task is set at its birth.
COLUMNS: dict[str, str] = {
    "status": "text", "status_since": "timestamptz", "revision": "int", "fence": "bigint", "lease_owner": "text",
    "due_at": "timestamptz", "starts": "int", "ordinal": "int", "parked_reason": "text", "attention": "text",
    "last_error": "text", "payment_ref": "text", "amount_minor": "bigint", "currency": "text", "reason": "text",
    "requester_id": "bigint", "state": "jsonb", "fingerprint": "text", "workflow_version": "int",
    "cancel_wished_at": "timestamptz", "cancel_wished_by": "text", "cancel_reason": "text",
    "event_seq": "int", "event_head": "bytea",
}
_ALWAYS = frozenset(
    {"status", "status_since", "revision", "fence", "lease_owner", "due_at", "starts", "parked_reason", "event_seq",
     "event_head"}
)


def apply(wanted: Sequence[Wanted]) -> list[Result]:
    """Make these so, all that still can be, in one durable transaction; one result each, in order.

    Raises ValueError for a move the state table does not have (a programming error), and Django's database errors.
    """
    for each in wanted:
        _check(each)
    point("apply.begin")
    with transaction.atomic(durable=True):
        results = _apply(wanted)
        point("apply.commit")
    point("apply.committed")
    return results


def apply_one(guard: Guard, transition: Transition, *, actor: str) -> Result:
    return apply([Wanted(guard, transition, actor)])[0]


def _check(wanted: Wanted) -> None:
    transition = wanted.transition
    if transition.to is not None and not is_legal(wanted.guard.status, transition.to):
        raise ValueError(f"no move from {wanted.guard.status} to {transition.to}")


def _apply(wanted: Sequence[Wanted]) -> list[Result]:
    touched = sorted(_ALWAYS.union(*(w.transition.columns for w in wanted)))
    locked = _lock([w.guard.task_id for w in wanted], touched)
    results: dict[int, Result] = {}
    standing: list[tuple[int, Wanted, Locked]] = []
    survivors: list[tuple[Locked, Part]] = []
    for index, each in enumerate(wanted):
        row = locked.get(each.guard.task_id)
        if row is not None and _holds(each.guard, row):
            standing.append((index, each, row))
            continue
        results[index] = Lost(each.guard.task_id, row.status if row else None, row.revision if row else None)
        if row is not None:
            survivors += [(row, part) for part in each.transition.parts if part.survives]
    by_kind = _by_kind([(row, part) for _, each, row in standing for part in each.transition.parts])
    refusals: dict[UUID, Refusal] = {}
    begun: set[Callable[[Kinds], None]] = set()
    for kind, parts in by_kind:
        before: Callable[[Kinds], None] | None = getattr(kind, "before", None)
        if before is not None and before not in begun:
            begun.add(before)
            before(by_kind)
        if asking := [p for p in parts if p[0].id not in refusals]:
            refusals |= kind.admit(asking)
    for index, each, row in standing:
        if row.id in refusals:
            results[index] = Refused(row.id, refusals[row.id])
            survivors += [(row, part) for part in each.transition.parts if part.survives]
    standing = [s for s in standing if s[2].id not in refusals]
    updates = [_moved(each, row) for _, each, row in standing]
    told = [_told(each, row, columns) for (_, each, row), columns in zip(standing, updates, strict=True)]
    _update(touched, updates, [row.revision for _, _, row in standing])
    chronicle.write([line for lines in told for line in lines])
    for kind, parts in by_kind:
        if admitted := [p for p in parts if p[0].id not in refusals]:
            kind.write(admitted)
    for kind, parts in _by_kind(survivors):
        kind.write(parts)
    for (index, each, row), columns in zip(standing, updates, strict=True):
        guard = Guard(row.id, columns["revision"], Status(columns["status"]),
                      None if each.guard.fence is None else columns["fence"])
        results[index] = Applied(row.id, guard, columns["event_seq"], row.now, columns)
    return [results[index] for index in range(len(wanted))]


def _holds(guard: Guard, row: Locked) -> bool:
    return (guard.revision, guard.status) == (row.revision, row.status) and guard.fence in (None, row.fence)


def _by_kind(parts: Sequence[tuple[Locked, Part]]) -> Kinds:
    kinds: dict[type[Part], list[tuple[Locked, Any]]] = {}
    for row, part in parts:
        kinds.setdefault(type(part), []).append((row, part))
    return sorted(kinds.items(), key=lambda item: item[0].rank)


def _lock(ids: Sequence[UUID], touched: Sequence[str]) -> dict[UUID, Locked]:
    # Ordered, so that two batches never wait for each other in a circle. The clock is read behind the count of what
    # was locked, that is after the last lock was had; a deadline judged by it cannot be passed while waiting.
    columns = "".join(f", {name}" for name in touched)
    found = rows.run(
        "WITH locked AS MATERIALIZED ("
        f" SELECT id, tenant_id, revision, status, fence, event_seq, event_head, cancel_wished_at IS NOT NULL{columns}"
        " FROM runtime_app_task WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE)"
        " SELECT *, (SELECT runtime_now() FROM (SELECT count(*) FROM locked) AS had) FROM locked",
        [list(ids)],
    )
    return {
        r[0]: Locked(r[0], r[1], r[2], Status(r[3]), r[4], r[5], bytes(r[6]), r[7], r[-1],
                     {name: _loaded(name, value) for name, value in zip(touched, r[8:-1], strict=True)})
        for r in found
    }


def _moved(wanted: Wanted, row: Locked) -> dict[str, Any]:
    """The task's columns after the transition."""
    transition, columns = wanted.transition, dict(row.columns)
    to = transition.to or row.status
    if transition.to is not None:
        columns["parked_reason"] = None  # what parked it belonged to the old status
    columns.update(transition.columns)
    columns["status"] = to
    if transition.to is not None:
        columns["status_since"] = row.now
    if transition.to is not None or transition.facts_changed:
        columns["revision"] = row.revision + 1
        if wanted.guard.fence is None:
            columns["fence"] = row.fence + 1  # whoever holds a lease on the old state comes too late
    if transition.starts is not None and transition.then is None:
        columns["starts"] = transition.starts
    if to in FINAL:
        columns["due_at"] = columns["lease_owner"] = None
    elif not (transition.keep_lease or transition.then):
        columns["due_at"] = _due(transition.due, row.now)
        columns["lease_owner"] = None
    elif transition.wake and columns["lease_owner"] is None:
        columns["due_at"] = row.now
    columns["event_seq"] = row.event_seq + len(_says(transition, row))
    columns["id"] = row.id
    return columns


def _says(transition: Transition, row: Locked) -> tuple[Say, ...]:
    return (*transition.events, *transition.if_wished) if row.cancel_wished else transition.events


def _due(due: After | datetime | None, now: datetime) -> datetime | None:
    return now + timedelta(seconds=due.seconds) if isinstance(due, After) else due


def _told(wanted: Wanted, row: Locked, columns: dict[str, Any]) -> list[chronicle.Line]:
    """The event rows of one transition; the last one's hash goes onto the task."""
    lines = chronicle.lines(
        task_id=row.id, tenant_id=row.tenant_id, after=row.event_seq, head=row.event_head, actor=wanted.actor,
        at=row.now, says=_says(wanted.transition, row),
    )
    columns["event_head"] = lines[-1].chain if lines else row.event_head
    return lines


@cache
def _update_query(touched: tuple[str, ...]) -> str:
    # The guard was tested under the lock; it stands here again so that no path writes without it.
    arrays = ", ".join(f"%s::{COLUMNS[name]}[]" for name in touched)
    return (
        f"UPDATE runtime_app_task AS t SET {', '.join(f'{name} = w.{name}' for name in touched)}"
        f" FROM unnest(%s::uuid[], %s::int[], {arrays}) AS w(id, was_revision, {', '.join(touched)})"
        " WHERE t.id = w.id AND t.revision = w.was_revision"
    )


def _update(touched: Sequence[str], updates: Sequence[dict[str, Any]], was: Sequence[int]) -> None:
    if not updates:
        return
    columns = [rows.array(COLUMNS[name], [_adapted(name, u[name]) for u in updates]) for name in touched]
    ids = rows.array("uuid", [u["id"] for u in updates])
    rows.run(_update_query(tuple(touched)), [ids, rows.array("int", was), *columns])


def _loaded(name: str, value: Any) -> Any:
    return json.loads(value) if COLUMNS[name] == "jsonb" else value  # Django leaves jsonb as text on its connections


def _adapted(name: str, value: Any) -> Any:
    return json.dumps(value) if COLUMNS[name] == "jsonb" else value
