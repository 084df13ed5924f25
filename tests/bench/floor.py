"""The floor F3: our own rows for three steps, written by hand with set-based SQL as fast as psycopg lets us.

It writes what the product writes for a `noop3` task (the same tables, triggers and constraints; a test counts the
rows), in batches of 50: one statement claims with SKIP LOCKED and opens the attempts, then one statement for each
step makes it durable before the next. It knows nothing that is not needed for that: no versions, no refusals, no
mixed kinds of rows, no fault points. `python -m tests.bench.floor` is one worker process of it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg

BATCH = 50
Connection = psycopg.Connection[tuple[Any, ...]]

CLAIM = """
WITH due AS MATERIALIZED (
    SELECT id AS due_id FROM runtime_app_task
    WHERE lane = 'default' AND due_at <= (SELECT runtime_now()) AND parked_reason IS NULL AND workflow = '{workflow}'
    ORDER BY due_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
), clock AS MATERIALIZED (SELECT runtime_now() AS now
), claimed AS (
    UPDATE runtime_app_task SET fence = fence + 1, starts = starts + 1, lease_owner = %s,
        due_at = clock.now + interval '60 seconds'
    FROM due, clock WHERE id = due_id
    RETURNING id, tenant_id, status, revision, fence, event_seq, event_head, schema_version, prompt_version, clock.now
        {more}
), begun AS (
    INSERT INTO runtime_app_attempt
        (id, tenant_id, task_id, fence, worker, workflow_version, schema_version, prompt_version, started_at)
    SELECT ids.attempt, c.tenant_id, c.id, c.fence, %s, 1, c.schema_version, c.prompt_version, now
    FROM (SELECT *, row_number() OVER () AS n FROM claimed) AS c
    JOIN unnest(%s::uuid[]) WITH ORDINALITY AS ids(attempt, n) USING (n)
)
SELECT id::text, status, revision, fence, event_seq, event_head, now{more} FROM claimed
"""
CLAIM_NOOP3 = CLAIM.format(workflow="noop3", more="")

# What every commit adds for the tasks in `moved`: steps, events and payloads.
RECORDS = """stepped AS (
    INSERT INTO runtime_app_step (id, tenant_id, task_id, fence, name, outcome, active_ms, ended_at)
    SELECT s.id, m.tenant_id, m.id, m.fence, s.name, s.outcome, s.active_ms, s.at
    FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::float8[], %s::timestamptz[])
        AS s(id, task_id, name, outcome, active_ms, at) JOIN moved m ON m.id = s.task_id
), told AS (
    INSERT INTO runtime_app_event (task_id, seq, tenant_id, type, actor, at, payload_sha256, chain)
    SELECT m.id, e.seq, m.tenant_id, e.type, %s, e.at, decode(e.payload_sha256, 'hex'), decode(e.chain, 'hex')
    FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::timestamptz[], %s::text[], %s::text[])
        AS e(task_id, seq, type, at, payload_sha256, chain) JOIN moved m ON m.id = e.task_id
), said AS (
    INSERT INTO runtime_app_eventpayload (task_id, seq, tenant_id, data)
    SELECT m.id, p.seq, m.tenant_id, p.data
    FROM unnest(%s::uuid[], %s::int[], %s::jsonb[]) AS p(task_id, seq, data) JOIN moved m ON m.id = p.task_id
)"""
COMMIT = f"""
WITH moved AS (
    UPDATE runtime_app_task AS t SET status = w.status, status_since = w.at, revision = t.revision + 1, starts = 0,
        due_at = CASE WHEN w.ends THEN NULL ELSE t.due_at END,
        lease_owner = CASE WHEN w.ends THEN NULL ELSE t.lease_owner END,
        event_seq = w.seq, event_head = decode(w.head, 'hex')
    FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::bigint[], %s::text[], %s::timestamptz[], %s::bool[], %s::int[],
        %s::text[]) AS w(id, was_revision, was_status, fence, status, at, ends, seq, head)
    WHERE t.id = w.id AND t.revision = w.was_revision AND t.status = w.was_status AND t.fence = w.fence
    RETURNING t.id, t.tenant_id, t.fence
), {RECORDS}
SELECT id::text FROM moved
"""
Said = tuple[tuple[str, str], ...]  # event types with their payload texts


@dataclass(frozen=True, slots=True)
class Step:
    """What one status of a noop3 task leads to."""

    to: str
    says: Said
    ends: bool = False


STEPS = {
    "queued": Step("ready", (("task.step_done", '{"step":1}'), ("task.ready", ""))),
    "ready": Step("executing", (("task.step_done", '{"step":2}'),)),
    "executing": Step("completed", (("task.step_done", '{"step":3}'), ("task.completed", "")), ends=True),
}


@dataclass(slots=True)
class Held:
    """A claimed task as it stands now."""

    id: str
    status: str
    revision: int
    fence: int
    seq: int
    head: bytes


@dataclass(slots=True)
class Records:
    """The steps, events and payloads of one commit."""

    actor: str
    when: str  # the database's time, in ISO's form
    steps: list[tuple[Any, ...]] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    payloads: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, task: Held, step_id: str, to: str, says: Said, active_ms: float, name: str = "") -> None:
        """Record the step that leads to `to`; the task's count and chain move on."""
        self.steps.append((step_id, task.id, name or f"on_{task.status}", to, active_ms, self.when))
        for kind, text in says:
            task.seq += 1
            digest = hashlib.sha256(text.encode())
            record = f"{task.id}\x1f{task.seq}\x1f{kind}\x1f{self.actor}\x1f{self.when}\x1f".encode()
            task.head = hashlib.sha256(task.head + record + digest.digest()).digest()
            self.events.append((task.id, task.seq, kind, self.when, digest.hexdigest(), task.head.hex()))
            if text:
                self.payloads.append((task.id, task.seq, text))

    def params(self) -> list[Any]:
        """What RECORDS asks for."""
        *keys, texts = zip(*self.payloads, strict=True)
        return [*arrays(self.steps), self.actor, *arrays(self.events), *map(array, keys), list(texts)]


def fresh_ids(count: int) -> list[str]:
    """UUIDv7 texts made together."""
    start, noise = f"{time.time_ns() // 1_000_000:012x}7", os.urandom(10 * count).hex()
    return [f"{start}{noise[i:i + 3]}8{noise[i + 3:i + 18]}" for i in range(0, 20 * count, 20)]


def drain(
    connection: Connection, worker: str, batch: int = BATCH, full: Callable[[], None] = lambda: None
) -> int:
    """Run every due task to its end; returns how many. `full` is called when there may be work for another worker.

    The connection must be in autocommit.
    """
    done = 0
    while True:
        found = connection.execute(
            CLAIM_NOOP3, [batch, worker, worker, array(fresh_ids(batch))], prepare=True
        ).fetchall()
        held = [Held(*row[:6]) for row in found]
        if len(found) == batch:
            full()
        if found:
            ahead = found[0][6] - datetime.now(UTC)
        while held:
            held = _commit(connection, held, f"worker:{worker}", datetime.now(UTC) + ahead)
        done += len(found)
        if len(found) < batch:
            return done


def _commit(connection: Connection, held: Sequence[Held], actor: str, at: datetime) -> list[Held]:
    """Make one step of each of these durable; returns those that go on."""
    records = Records(actor, at.isoformat())
    moves: list[tuple[Any, ...]] = []
    begun = time.perf_counter()
    for task, step_id in zip(held, fresh_ids(len(held)), strict=True):
        was, step = task.status, STEPS[task.status]
        records.add(task, step_id, step.to, step.says, (time.perf_counter() - begun) * 1000)
        moves.append(
            (task.id, task.revision, was, task.fence, step.to, records.when, step.ends, task.seq, task.head.hex())
        )
        task.status, task.revision = step.to, task.revision + 1
    moved = connection.execute(COMMIT, [*arrays(moves), *records.params()], prepare=True).fetchall()
    still = {row[0] for row in moved}
    return [task for task in held if task.id in still and task.status in STEPS]


def arrays(values: Sequence[tuple[Any, ...]]) -> list[str]:
    """One array literal a column."""
    return [array(column) for column in zip(*values, strict=True)]


def array(values: Sequence[Any]) -> str:
    """An array literal of values that need no quoting (numbers, hex, names, instants)."""
    return "{" + ",".join(map(str, values)) + "}"


def connect(url: str) -> Connection:
    return psycopg.connect(url, autocommit=True)


def serve(work: Callable[[], int]) -> None:
    """For each line on standard input, work, and answer with a line that says how much was done."""
    print("ready", flush=True)
    for _ in sys.stdin:
        print(work(), flush=True)


def main() -> None:
    with connect(os.environ["DATABASE_URL"]) as connection:
        serve(lambda: drain(connection, f"floor:{os.getpid()}"))


if __name__ == "__main__":
    main()
