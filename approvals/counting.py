"""Whose votes count, and what is still missing. Plain values, asked when somebody votes and again at execution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from approvals.rules import IN_ORDER, Review, Rules
from approvals.standing import Standings


@dataclass(frozen=True, slots=True)
class Vote:
    """One agreement that was not taken back. `for_person`: in the place of somebody who was away."""

    person_id: int
    review: str
    for_person: int | None = None

    @property
    def place(self) -> int:
        return self.person_id if self.for_person is None else self.for_person


def missing(rules: Rules, votes: Sequence[Vote]) -> dict[str, int]:
    """How many people each review still lacks, by name, in the rules' order; empty when all have agreed."""
    given = Counter(vote.review for vote in votes)
    return {r.name: r.quorum - given[r.name] for r in rules.reviews if given[r.name] < r.quorum}


def open_reviews(rules: Rules, votes: Sequence[Vote]) -> tuple[Review, ...]:
    """The reviews in which somebody may vote now: all that lack people, or the first of them when they go in order."""
    lacking = missing(rules, votes)
    found = tuple(r for r in rules.reviews if r.name in lacking)
    return found[:1] if rules.order == IN_ORDER else found


def valid(
    rules: Rules, votes: Sequence[Vote], standings: Standings, *, tenant_id: UUID, amount_minor: int, currency: str,
    excluded: frozenset[int], escalated: bool,
) -> tuple[Vote, ...]:
    """The votes that count with what people hold now: each voter may decide, is meant by the review (or stands for
    somebody who is), asked for nothing of it, and no place is counted twice."""
    reviews = {r.name: r for r in rules.reviews}
    also = rules.escalate_to if escalated else None
    counted: dict[int, Vote] = {}
    for vote in votes:
        voter, place = standings.get((tenant_id, vote.person_id)), standings.get((tenant_id, vote.place))
        review = reviews.get(vote.review)
        if voter is None or place is None or review is None or {vote.person_id, vote.place} & excluded:
            continue
        if not place.may(review, amount_minor, currency, also):
            continue
        if counted.keys().isdisjoint({vote.person_id, vote.place}):
            counted[vote.person_id] = counted[vote.place] = vote
    return tuple(dict.fromkeys(counted.values()))


def shortage(reviews: Sequence[Review], able: Mapping[str, frozenset[int]]) -> dict[str, int]:
    """How many people each review would lack if everybody able agreed, each once; empty when the reviews can be met.

    A person who is able in several reviews is given to the one that needs the person (an augmenting path each).
    """
    places = [(r.name, n) for r in reviews for n in range(r.quorum)]
    taken: dict[int, tuple[str, int]] = {}

    def fill(place: tuple[str, int], tried: set[int]) -> bool:
        for person in sorted(able.get(place[0], frozenset()) - tried):
            tried.add(person)
            if person not in taken or fill(taken[person], tried):
                taken[person] = place
                return True
        return False

    empty = Counter(place[0] for place in places if not fill(place, set()))
    return dict(empty)
