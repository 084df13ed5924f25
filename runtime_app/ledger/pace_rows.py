"""The rows of accounts' paces: taken from by one statement while all is well, else locked, judged and written back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from runtime_app import rows
from runtime_app.reconciliation.pace import Pace, Why, rate
from runtime_app.timing import Timing

Key = tuple[UUID, str]  # tenant, account reference
_COUNTED_MOST = 50_000  # waiting looks are not counted beyond this

# The condition stands twice, since the row may have changed between what the statement saw and the lock it got.
_TOKENS = "least(%s, p.tokens + %s * greatest(0, extract(epoch FROM clock.now - p.refilled_at)::float8))"
_GRANT = f"""
WITH held AS MATERIALIZED (
    SELECT p.account_id, w.* FROM unnest(%s::uuid[], %s::text[], %s::float8[]) AS w(tenant, ref, cost)
    JOIN runtime_app_account a ON a.tenant_id = w.tenant AND a.ref = w.ref
    JOIN runtime_app_accountpace p ON p.account_id = a.id ORDER BY p.account_id FOR NO KEY UPDATE OF p
), clock AS MATERIALIZED (SELECT runtime_now() AS now FROM (SELECT count(*) FROM held) AS had
)
UPDATE runtime_app_accountpace AS p SET refilled_at = clock.now, tokens = {_TOKENS} - held.cost
FROM held, clock WHERE p.account_id = held.account_id AND p.troubles = 0 AND p.closed_until IS NULL
    AND p.sweep_due_at IS NULL AND {_TOKENS} >= held.cost
RETURNING held.tenant, held.ref
"""


def take_all(costs: Mapping[Key, float], timing: Timing) -> list[Key]:
    """Take what is asked of accounts that are well and can bear all of it; returns those."""
    if not costs:
        return []
    policy = [float(timing.look_burst), rate(timing)]
    found = rows.run(
        _GRANT, [[key[0] for key in costs], [key[1] for key in costs], list(costs.values()), *policy, *policy]
    )
    return [(row[0], row[1]) for row in found]


@dataclass(slots=True)
class Held:
    """The paces of some accounts under our lock, with the database's time read after it was had."""

    now: datetime
    timing: Timing
    paces: dict[Key, Pace]
    ids: dict[Key, UUID]
    _waiting: dict[Key, int] = field(default_factory=dict)  # counted once a batch, where something is refused

    def wait(self, key: Key, why: Why, cost: float, *, sweeps: bool) -> float:
        """Seconds until a look that is refused is tried again; where many wait and the account's list can be read, a
        sweep is wished for."""
        pace = self.paces[key]
        if key not in self._waiting:
            self._waiting[key], worth = _waiting(*key)
            if sweeps:
                pace.wish_sweep(worth, self.now, self.timing)
        return pace.wait(why, self._waiting[key], cost, self.now, self.timing)

    def keep(self) -> None:
        """Write them back."""
        kept = [(self.ids[key], p) for key, p in self.paces.items()]
        values = [
            (id, float(p.tokens), p.refilled_at, p.troubles, p.closed_until, p.sweep_due_at, p.sweep_since)
            for id, p in kept
        ]
        rows.run(
            "UPDATE runtime_app_accountpace AS p SET tokens = w.tokens, refilled_at = w.refilled,"
            " troubles = w.troubles, closed_until = w.closed, sweep_due_at = w.due, sweep_since = w.since"
            " FROM unnest(%s::uuid[], %s::float8[], %s::timestamptz[], %s::int[], %s::timestamptz[],"
            " %s::timestamptz[], %s::timestamptz[]) AS w(id, tokens, refilled, troubles, closed, due, since)"
            " WHERE p.account_id = w.id",
            rows.arrays(_COLUMNS, values),
        )


_COLUMNS = (
    ("id", "uuid"), ("tokens", "float8"), ("refilled", "timestamptz"), ("troubles", "int"), ("closed", "timestamptz"),
    ("due", "timestamptz"), ("since", "timestamptz"),
)


def locked(keys: Iterable[Key], timing: Timing) -> Held:
    """Lock the paces of these accounts, refilled, in one order for all; made where there are none yet.

    Needs a transaction of the caller's.
    """
    wanted = sorted(set(keys))
    asked = [[key[0] for key in wanted], [key[1] for key in wanted]]
    rows.run(
        "INSERT INTO runtime_app_accountpace (account_id, tokens, refilled_at, troubles)"
        " SELECT a.id, %s, runtime_now(), 0 FROM unnest(%s::uuid[], %s::text[]) AS w(tenant, ref)"
        " JOIN runtime_app_account a ON a.tenant_id = w.tenant AND a.ref = w.ref ORDER BY a.id ON CONFLICT DO NOTHING",
        [float(timing.look_burst), *asked],
    )
    found = rows.run(
        "WITH held AS MATERIALIZED (SELECT w.tenant, w.ref, p.account_id, p.tokens, p.refilled_at, p.troubles,"
        " p.closed_until, p.sweep_due_at, p.sweep_since FROM unnest(%s::uuid[], %s::text[]) AS w(tenant, ref)"
        " JOIN runtime_app_account a ON a.tenant_id = w.tenant AND a.ref = w.ref"
        " JOIN runtime_app_accountpace p ON p.account_id = a.id ORDER BY p.account_id FOR NO KEY UPDATE OF p)"
        " SELECT *, (SELECT runtime_now() FROM (SELECT count(*) FROM held) AS had) FROM held",
        asked,
    )
    held = Held(found[0][-1], timing, {(r[0], r[1]): Pace(*r[3:9]) for r in found}, {(r[0], r[1]): r[2] for r in found})
    for pace in held.paces.values():
        pace.refill(held.now, timing)
    return held


# What was not there when it was looked for, by itself or in the whole list, will hardly be in the list now; unless it
# has been sent again since.
WORTH_A_SWEEP = (
    "(o.absents = 0 OR o.resends > 0) AND (p.swept_at IS NULL OR coalesce(o.last_possible_send_at, o.first_submit_at)"
    " > p.swept_at)"
)


def _waiting(tenant_id: UUID, account: str) -> tuple[int, int]:
    """How many of the account's outcomes in doubt are due for a look, and how many of those are worth a sweep."""
    found = rows.run(
        f"SELECT count(*), count(*) FILTER (WHERE worth) FROM (SELECT {WORTH_A_SWEEP} AS worth"
        " FROM runtime_app_account a JOIN runtime_app_accountpace p ON p.account_id = a.id"
        " JOIN runtime_app_operation o ON o.tenant_id = a.tenant_id AND o.account = a.ref"
        " AND o.state IN ('pending', 'unknown') AND o.next_check_at <= (SELECT runtime_now())"
        " WHERE a.tenant_id = %s AND a.ref = %s LIMIT %s) AS counted",
        [tenant_id, account, _COUNTED_MOST],
    )
    return int(found[0][0]), int(found[0][1])
