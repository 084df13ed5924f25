"""Which open approvals a person may decide now, found a page at a time however many are open.

What `places.place` says of one approval is said here of many: the nearest of them are read in two bounded questions to
the database, and judged with what the person holds at this moment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Func, JSONField, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast, JSONObject

from approvals import absences, simulation, standing
from approvals.counting import Vote, open_reviews
from approvals.given import parties
from approvals.models import OPEN, Approval, Decision, Policy
from approvals.rules import Rules
from approvals.rules_json import frozen
from approvals.standing import Standing
from runtime_app.models import User
from runtime_app.models.columns import RuntimeNow

FIRST, MOST = 150, 2000  # so many are read at first, and at most, before a page says that there may be more
Position = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True)
class Reached:
    """The approvals the person may decide, nearest deadline first. `behind` is where to go on; None at the end."""

    ids: tuple[UUID, ...]
    behind: Position | None
    nearest: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    """What the person holds in the tenant, and whom the person stands in for."""

    person_id: int
    own: Standing | None
    away: tuple[Standing, ...]

    @classmethod
    def of(cls, person: User, tenant_id: UUID) -> Reach:
        away = [a.person_id for a in absences.stood_for(person, tenant_id)]
        held = standing.of_people([tenant_id], [person.pk, *away])
        found = (held.get((tenant_id, id)) for id in dict.fromkeys(away))
        return cls(person.pk, held.get((tenant_id, person.pk)), tuple(one for one in found if one is not None))

    def decides(self, seen: Seen) -> bool:
        """Whether the person's word would count now, as `places.place` says it."""
        taken = {one for vote in seen.votes for one in (vote.person_id, vote.place)} | seen.parties | seen.spoken
        if self.own is None or self.person_id in taken:
            return False
        reviews, also = open_reviews(seen.rules, seen.votes), seen.rules.escalate_to if seen.escalated else None
        may = (self.own, *(one for one in self.away if one.person_id not in taken))
        return any(one.may(r, seen.amount_minor, seen.currency, also) for one in may for r in reviews)


@dataclass(frozen=True, slots=True)
class Seen:
    """What of an open approval says who may decide it."""

    id: UUID
    deadline_at: datetime
    rules: Rules
    escalated: bool
    amount_minor: int
    currency: str
    parties: frozenset[int]
    votes: tuple[Vote, ...]
    spoken: frozenset[int]


@lru_cache(maxsize=512)
def _frozen(said: str, quorum: int) -> Rules:
    return frozen(json.loads(said), quorum)


def find(
    person: User, tenant_id: UUID, among: QuerySet[Approval], *, size: int, after: Position | None = None,
    most: int = MOST,
) -> Reached:
    """The first `size` of the tenant's open approvals `among` these that the person may decide, behind `after`."""
    reach, found, last = Reach.of(person, tenant_id), list[UUID](), after
    nearest: datetime | None = None
    if reach.own is None:
        return Reached((), None)
    waiting = among.filter(tenant_id=tenant_id, state=OPEN, deadline_at__gt=RuntimeNow())
    for seen in _nearest(waiting, after, most):
        if seen is None:
            return Reached(tuple(found), None, nearest)
        if reach.decides(seen):
            if len(found) == size:
                return Reached(tuple(found), last, nearest)
            found.append(seen.id)
            nearest = nearest or seen.deadline_at
        last = seen.deadline_at, seen.id
    return Reached(tuple(found), last, nearest)


def _nearest(rows: QuerySet[Approval], after: Position | None, most: int) -> Iterator[Seen | None]:
    """At most `most` of them in order; None behind the last one that there is."""
    for size in (min(FIRST, most), most - FIRST):
        if size <= 0:
            return
        batch = list(_read(rows, after)[:size])
        yield from map(_seen, batch)
        if len(batch) < size:
            yield None
            return
        after = batch[-1][1], batch[-1][0]


def _read(rows: QuerySet[Approval], after: Position | None) -> QuerySet[Approval, tuple[Any, ...]]:
    if after is not None:
        at, id = after
        rows = rows.filter(deadline_at__gte=at).filter(Q(deadline_at__gt=at) | Q(deadline_at=at, id__gt=id))
    said = Decision.objects.filter(approval=OuterRef("pk"), withdrawn_at=None).order_by("decided_at", "id")
    one = JSONObject(by="person_id", review="review", place="for_person_id", verdict="verdict")
    return rows.order_by("deadline_at", "id").values_list(
        "id", "deadline_at", Cast("rules", TextField()), "quorum", "escalated_at", F("facts__amount_minor"),
        F("facts__currency"), "task__requester_id",
        Func(F("task__state"), template="%(expressions)s -> 'shaped_by'", output_field=JSONField()),
        ArraySubquery(said.values_list(one)),
    )


def _seen(row: tuple[Any, ...]) -> Seen:
    id, deadline, rules, quorum, escalated, amount, currency, requester, shaped_by, said = row
    votes = tuple(Vote(d["by"], d["review"], d["place"]) for d in said if d["verdict"] == "approve")
    return Seen(
        id, deadline, _frozen(rules, quorum), escalated is not None, amount, currency,
        parties(requester, {"shaped_by": shaped_by or ()}), votes, frozenset(d["by"] for d in said),
    )


def named(person: User, tenant_id: UUID) -> Q:
    """Approvals whose rules name this person, or a team of the person's. Only what was asked under a policy that names
    them is looked at."""
    own = standing.of_people([tenant_id], [person.pk]).get((tenant_id, person.pk))
    whos = [{"people": [person.username]}, *({"teams": [team]} for team in sorted(own.teams if own else ()))]
    names = _any(Q(rules__contains={"reviews": [{"who": who}]}) for who in whos)
    policies = list(Policy.objects.filter(names, tenant_id=tenant_id).values_list("id", flat=True))
    return Q(policy_id__in=policies) & names


def _any(conditions: Iterable[Q]) -> Q:
    first, *others = conditions
    for each in others:
        first |= each
    return first


def seen_of(ids: Sequence[UUID]) -> dict[UUID, Seen]:
    """The same of these approvals, in one question."""
    return {seen.id: seen for seen in map(_seen, _read(Approval.objects.filter(id__in=ids), None))} if ids else {}


def nobody_could(tenant_id: UUID, asked: Sequence[Seen]) -> frozenset[UUID]:
    """Those of these open approvals that nobody could decide with the people of this moment."""
    everybody = standing.of_tenant(tenant_id) if asked else []
    return frozenset(seen.id for seen in asked if simulation.lacking(
        seen.rules, {"amount_minor": seen.amount_minor, "currency": seen.currency}, everybody, excluded=seen.parties,
        also=seen.rules.escalate_to if seen.escalated else None,
    ))
