"""What a policy would do: who could decide an amount today and by when, and where nobody could."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals import standing
from approvals.calendars import before, due
from approvals.counting import shortage
from approvals.rules import ANY, Limits, Review, Rules, Who, limit
from approvals.standing import Standing
from runtime_app.models import Tenant
from runtime_app.money import MAX_MINOR, Money


@dataclass(frozen=True, slots=True)
class Simulated:
    """What would happen to a request. `lacking` says how many people a review could not get."""

    forbidden: bool
    reviews: tuple[Review, ...]
    people: Mapping[str, tuple[Standing, ...]]
    lacking: Mapping[str, int]
    deadline_at: datetime | None
    remind_at: datetime | None
    escalate_at: datetime | None
    asks_password: bool
    in_bulk: bool


def simulate(
    tenant: Tenant, rules: Rules, *, amount_minor: int, currency: str, at: datetime, excluded: Iterable[int] = ()
) -> Simulated:
    """A request of this amount made at this time, by (or changed by) the people who are excluded."""
    reviews = () if rules.forbids(amount_minor, currency) else rules.needed(amount_minor, currency)
    everybody = standing.of_tenant(tenant.id)
    people = _people(reviews, everybody, amount_minor, currency, frozenset(excluded))
    deadline = due(rules.term, at, tenant.time_zone, rules.hours) if reviews else None
    return Simulated(
        rules.forbids(amount_minor, currency), reviews, people, _lacking(reviews, people), deadline,
        _before(deadline, rules.remind, at), _before(deadline, rules.escalate, at),
        rules.asks_password(amount_minor, currency), rules.in_bulk(amount_minor, currency),
    )


def _before(deadline: datetime | None, hours: float, at: datetime) -> datetime | None:
    return before(deadline, hours, at) if deadline is not None and hours else None


def _people(
    reviews: Sequence[Review], everybody: Sequence[Standing], amount: int, currency: str, excluded: frozenset[int],
    also: Who | None = None,
) -> dict[str, tuple[Standing, ...]]:
    return {
        r.name: tuple(p for p in everybody if p.person_id not in excluded and p.may(r, amount, currency, also))
        for r in reviews
    }


def _lacking(reviews: Sequence[Review], people: Mapping[str, Sequence[Standing]]) -> dict[str, int]:
    return shortage(reviews, {name: frozenset(p.person_id for p in found) for name, found in people.items()})


def impossible(tenant: Tenant, rules: Rules, *, at: datetime) -> dict[str, str]:
    """By place, where nobody could satisfy the rules with the people of today; or where they leave no time."""
    errors: dict[str, str] = {}
    try:
        due(rules.term, at, tenant.time_zone, rules.hours)
    except ValueError as refused:
        errors["term"] = str(refused)
    everybody = standing.of_tenant(tenant.id)
    for amount, currency in _edges(rules):
        reviews = rules.needed(amount, currency)
        lacking = _lacking(reviews, _people(reviews, everybody, amount, currency, frozenset()))
        for index, review in enumerate(rules.reviews):
            if review.name in lacking:
                place = f"reviews.{index}.quorum"
                errors.setdefault(place, _sentence(review, lacking[review.name], amount, currency))
    return errors


def _sentence(review: Review, lacking: int, amount: int, currency: str) -> str:
    of = Money(amount, currency) if currency != ANY and amount < MAX_MINOR else "the largest amounts"
    many = "one person is" if lacking == 1 else f"{lacking} people are"
    return f"Nobody could get {of} through the {review.name} review: {many} missing, each of whom may decide once."


def risky(tenant: Tenant, rules: Rules) -> list[str]:
    """Who must not ask for a refund, since without that person's own word the rules cannot be met."""
    everybody = standing.of_tenant(tenant.id)
    found: set[int] = set()
    for amount, currency in _edges(rules):
        reviews = rules.needed(amount, currency)
        people = _people(reviews, everybody, amount, currency, frozenset())
        asked = sum(review.quorum for review in reviews)
        # A review with more people than all of them together need does without any one of them.
        scarce = {p.person_id for able in people.values() if len(able) <= asked for p in able} - found
        found |= {one for one in scarce if _lacking(reviews, _without(people, one))}
    return [person.name for person in everybody if person.person_id in found]


def _without(people: Mapping[str, Sequence[Standing]], person_id: int) -> dict[str, list[Standing]]:
    return {name: [p for p in able if p.person_id != person_id] for name, able in people.items()}


def _edges(rules: Rules) -> list[tuple[int, str]]:
    """The amounts at which something changes, in each currency that is named, and one that is not."""
    limits: list[Limits] = [review.above for review in rules.reviews]
    limits += [role.up_to for review in rules.reviews for role in review.who.roles]
    currencies = sorted({code for one in limits for code in one} | {ANY})
    edges: set[tuple[int, str]] = set()
    for currency in currencies:
        bounds = {bound for one in limits if (bound := limit(one, currency)) is not None}
        for amount in {1, MAX_MINOR, *(bound + 1 for bound in bounds if bound < MAX_MINOR)}:
            most = limit(rules.forbidden_above, currency)
            edges.add((amount if most is None else min(amount, max(most, 1)), currency))
    return sorted(edges)


def lacking_now(tenant: Tenant, rules: Rules, facts: Mapping[str, Any], *, excluded: Iterable[int]) -> dict[str, int]:
    """How many people an approval that is open now could not get, by review; empty when it can be decided."""
    return lacking(rules, facts, standing.of_tenant(tenant.id), excluded=excluded)


def lacking(
    rules: Rules, facts: Mapping[str, Any], everybody: Sequence[Standing], *, excluded: Iterable[int],
    also: Who | None = None,
) -> dict[str, int]:
    """The same with people who were read before; `also` are those to whom it has been escalated."""
    people = _people(
        rules.reviews, everybody, facts["amount_minor"], facts["currency"], frozenset(excluded), also
    )
    return _lacking(rules.reviews, people)
