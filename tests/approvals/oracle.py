"""What must be so before money moves, told from what people did and were shown; it shares nothing with the product."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import permutations
from typing import Any
from uuid import UUID

Said = dict[str, Any]  # a policy as it is written
SHOWN = ("amount_minor", "currency", "payment_ref", "destination", "external_minor", "reason", "policy_version")


class Unlawful(AssertionError):
    """Something was taken for an agreement, or money moved, that should not."""


@dataclass
class Person:
    """Somebody as the tenant knows them at this moment."""

    name: str
    roles: set[str]
    active: bool = True

    @property
    def may_decide(self) -> bool:
        return self.active and "approver" in self.roles


@dataclass(frozen=True)
class Away:
    person: str
    substitute: str
    since: datetime
    until: datetime


@dataclass(frozen=True)
class Given:
    """An agreement that the product has taken: who, to which approval, having been shown what, for which people."""

    who: str
    approval: UUID
    shown: tuple[Any, ...]
    seats: frozenset[str]
    turn: int  # how often the request had been amended before


@dataclass
class Wanted:
    """A request: what is asked for now, who had a hand in it, and what people said."""

    order: str
    amount: int
    by: str
    reason: str | None = None
    editors: set[str] = field(default_factory=set)
    destination: str | None = None
    external: int = 0
    turn: int = 0
    over: str = ""  # refused or cancelled, and nothing may move any more
    given: list[Given] = field(default_factory=list)
    escalated: set[UUID] = field(default_factory=set)

    @property
    def excluded(self) -> set[str]:
        return {self.by} | self.editors


@dataclass
class Town:
    """The tenant as it is now."""

    people: dict[str, Person]
    teams: dict[str, set[str]]
    away: list[Away]
    said: Said
    number: int
    before: dict[int, Said] = field(default_factory=dict)  # every version, also the one in force

    def meant(self, name: str, who: Said, amount: int) -> bool:
        """Whether the person is named by it, in whatever way."""
        roles = [r for r in who.get("roles", ()) if r["name"] in self.people[name].roles]
        return (
            name in who.get("people", ()) or any(name in self.teams.get(ref, ()) for ref in who.get("teams", ()))
            or any(amount <= r.get("up_to", {}).get("USD", amount) for r in roles)
        )

    def seats(self, name: str, now: datetime) -> frozenset[str]:
        """For whom the person may speak: for themselves, and for those who are away and named the person."""
        others = {a.person for a in self.away if a.substitute == name and a.since <= now < a.until}
        return frozenset({name} | others)


def reviews(said: Said, amount: int) -> list[Said]:
    return [r for r in said["reviews"] if amount > r["above"].get("USD", r["above"].get("*", -1))]


def unlawful_vote(
    town: Town, wanted: Wanted, name: str, approval: UUID, *, version: int, now: datetime, deadline: datetime
) -> str:
    """Why this agreement, asked for under that version, should not have been taken; empty when it may be."""
    if not town.people[name].may_decide:
        return f"{name} may not decide here"
    if name in wanted.excluded:
        return f"{name} asked for it or changed it"
    if now >= deadline:
        return "the time to decide was over"
    if any(v.who == name and v.approval == approval for v in wanted.given):
        return f"{name} has spoken already"
    free = places(town, wanted, name, approval, version=version, now=now)
    if not free:
        return f"nobody whom {name} may speak for is asked"
    if not _apart([v.seats for v in wanted.given if v.approval == approval] + [free], set()):
        return f"{name} speaks for somebody who was heard already"
    return ""


def places(town: Town, wanted: Wanted, name: str, approval: UUID, *, version: int, now: datetime) -> frozenset[str]:
    """For whom of those whom that version asks the person may speak now."""
    under = town.before[version]
    return frozenset(
        seat for seat in town.seats(name, now) - wanted.excluded
        if any(_sits(town, seat, review, wanted, approval, under) for review in reviews(under, wanted.amount))
    )


def _apart(seats: list[frozenset[str]], taken: set[str]) -> bool:
    """Whether each of them can be a different person."""
    return not seats or any(_apart(seats[1:], taken | {seat}) for seat in seats[0] - taken)


def _sits(town: Town, seat: str, review: Said, wanted: Wanted, approval: UUID, under: Said) -> bool:
    asked = [review["who"]] + ([under["escalate_to"]] if approval in wanted.escalated else [])
    return town.people[seat].may_decide and any(town.meant(seat, who, wanted.amount) for who in asked)


def unlawful_effect(town: Town, wanted: Wanted, effect: dict[str, Any]) -> str:
    """Why this money should not have moved; empty when enough people stand behind exactly this now."""
    if wanted.over:
        return f"the request was {wanted.over}"
    amount = effect["amount_minor"]
    if amount != wanted.amount:
        return f"{amount} moved where {wanted.amount} was asked for"
    needed = reviews(town.said, amount)
    exactly = (amount, "USD", f"pi_{wanted.order}", wanted.destination, wanted.external, wanted.reason, town.number)
    groups: dict[UUID, list[Given]] = {}
    for vote in wanted.given:
        if vote.shown == exactly and vote.turn == wanted.turn and vote.who not in wanted.excluded:
            groups.setdefault(vote.approval, []).append(vote)
    if not needed or any(_enough(town, wanted, needed, votes) for votes in groups.values()):
        return ""
    return f"too few stand behind {exactly}: {wanted.given}"


def _enough(town: Town, wanted: Wanted, needed: list[Said], votes: list[Given]) -> bool:
    """Whether the places of all reviews can be filled with different people, each for a different one."""
    places = [review for review in needed for _ in range(review["quorum"])]
    votes = [v for v in votes if town.people[v.who].may_decide]
    return any(_fill(town, wanted, places, list(some), set()) for some in permutations(votes, len(places)))


def _fill(town: Town, wanted: Wanted, places: list[Said], votes: list[Given], taken: set[str]) -> bool:
    if not places:
        return True
    vote = votes[0]
    for seat in vote.seats - wanted.excluded - taken:
        others = {v.who for v in votes[1:]} - {vote.who}
        if seat not in others and _sits(town, seat, places[0], wanted, vote.approval, town.said) and _fill(
            town, wanted, places[1:], votes[1:], taken | {seat, vote.who}
        ):
            return True
    return False


def without(votes: list[Given], who: str, approval: UUID) -> list[Given]:
    return [replace(v) for v in votes if (v.who, v.approval) != (who, approval)]
