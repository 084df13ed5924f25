"""An account's pace as a part of transitions: looks take what they may ask, and what their answers tell is learnt.

One statement serves a batch of looks while nothing is wrong. Paces are locked before operations and balances, all of a
batch's at once and in one order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self
from uuid import UUID
from weakref import WeakSet

from django.db import transaction

from runtime_app.ledger.pace_rows import Key, locked, take_all
from runtime_app.points import point
from runtime_app.reconciliation.pace import Heard, Pace, Why
from runtime_app.timing import Timing
from runtime_app.transitions import Locked, Refusal


@dataclass(slots=True, eq=False, weakref_slot=True)
class Grant:
    """Leave for one look, filled in when it is granted. `probe`: it goes first after a trouble. `troubled`: its answer
    is to be told even if it is a good one."""

    probe: bool = False
    troubled: bool = False


@dataclass(frozen=True, slots=True)
class AtPace:
    """A look about to be made, of `cost` requests at most; refused as `paced`, with the `seconds` after which to try
    again, when it may not be now. Or, with `heard`, what the answer to it said.
    """

    account: str
    timing: Timing
    grant: Grant
    cost: float = 0.0
    heard: Heard | None = None
    sweeps: bool = False  # the account's list can be read

    rank: ClassVar[int] = 3
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        asks: dict[Key, list[Ask]] = {}
        answers: dict[Key, list[AtPace]] = {}
        for row, part in wanted:
            key = (row.tenant_id, part.account)
            if part.heard is None:
                asks.setdefault(key, []).append((row.id, part))
            else:
                answers.setdefault(key, []).append(part)
        return settle(asks, {key: parts for key, parts in answers.items() if any(map(_matters, parts))})

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None


def overheard(account: str, timing: Timing, wait: float | None) -> AtPace:
    """The answer to something else said that too much is asked."""
    return AtPace(account, timing, Grant(), heard=Heard(trouble=True, throttled=True, wait=wait))


Ask = tuple[UUID, AtPace]  # with the id that a refusal names


def _matters(part: AtPace) -> bool:
    return part.grant.troubled or (part.heard is not None and part.heard.trouble)


def settle(asks: Mapping[Key, Sequence[Ask]], answers: Mapping[Key, Sequence[AtPace]]) -> dict[UUID, Refusal]:
    """Learn from the answers, then grant what may be asked. Needs a transaction of the caller's."""
    left, room = dict(asks), {key: _room(key, parts) for key, parts in asks.items()}
    if left and not answers and all(len(parts) <= room[key] for key, parts in left.items()):
        # Whoever is not served here is locked already; a batch that needs more locks takes all of them in one order.
        costs = {key: sum(part.cost for _, part in parts) for key, parts in left.items()}
        for key in take_all(costs, next(iter(left.values()))[0][1].timing):
            begin(key, [part.grant for _, part in left.pop(key)])
    return _judge(left, room, answers) if left or answers else {}


def _judge(
    asks: Mapping[Key, Sequence[Ask]], room: Mapping[Key, int], answers: Mapping[Key, Sequence[AtPace]]
) -> dict[UUID, Refusal]:
    some = next(iter(answers.values()))[0] if answers else next(iter(asks.values()))[0][1]
    held = locked([*asks, *answers], some.timing)
    for key, told in answers.items():
        _learn(held.paces[key], told, held.now)
    refused: dict[UUID, Refusal] = {}
    for key, parts in asks.items():
        pace = held.paces[key]
        answer = pace.ask([part.cost for _, part in parts[:room[key]]], held.now, some.timing)
        many, why = (0, answer) if isinstance(answer, Why) else (answer, Why.SPENT)
        begin(key, _granted(pace, parts[:many]))
        for id, part in parts[many:]:
            reason = Why.CLOSED if pace.closed_until is not None else why
            seconds = held.wait(key, reason, part.cost, sweeps=part.sweeps)
            refused[id] = Refusal("paced", {"seconds": seconds, "why": reason})
    held.keep()
    return refused


def _granted(pace: Pace, parts: Sequence[Ask]) -> list[Grant]:
    probe = pace.closed_until is not None
    for _, part in parts:
        part.grant.probe, part.grant.troubled = probe, probe or pace.troubles > 0
    return [part.grant for _, part in parts]


def _learn(pace: Pace, told: Sequence[AtPace], now: datetime) -> None:
    heard = [part.heard for part in told if part.heard is not None]
    probe = next((part.heard for part in told if part.grant.probe), None)
    pace.hear(heard, now, told[0].timing, sweeps=told[0].sweeps, probe=probe)


def take(tenant_id: UUID, part: AtPace) -> float:
    """Leave for a look outside of any transition: 0, or the seconds after which to ask again."""
    with transaction.atomic(durable=True):
        refused = settle({(tenant_id, part.account): [(tenant_id, part)]}, {})
        point("pace.take.commit")
    point("pace.take.committed")
    return float(refused[tenant_id].facts["seconds"]) if refused else 0.0


def tell(tenant_id: UUID, part: AtPace) -> None:
    """What came of a look outside of any transition."""
    if _matters(part):
        with transaction.atomic(durable=True):
            settle({}, {(tenant_id, part.account): [part]})
            point("pace.tell.commit")
        point("pace.tell.committed")


# --- how many are under way in this process --------------------------------------------------------------------------

_under_way: dict[Key, WeakSet[Grant]] = {}
_mutex = threading.Lock()


def begin(key: Key, grants: Iterable[Grant]) -> None:
    with _mutex:
        _under_way.setdefault(key, WeakSet()).update(grants)


def over(tenant_id: UUID, account: str, grant: Grant) -> None:
    """The look is over, whatever came of it. One that is forgotten is over too."""
    with _mutex:
        if (grants := _under_way.get((tenant_id, account))) is not None:
            grants.discard(grant)


def _room(key: Key, parts: Sequence[Ask]) -> int:
    """How many more looks at the account may be under way here: a slow one must leave threads to the others."""
    with _mutex:
        known = set(_under_way.get(key, ()))
    others = len(known - {part.grant for _, part in parts})  # of a batch that is tried again, none is another
    return max(0, max(1, parts[0][1].timing.look_abreast) - others)
