"""Who must agree to what, as data: the rules of one version of a policy. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from approvals.calendars import Hours, Kind, Term

ANY = "*"  # every currency that is not named
Limits = Mapping[str, int]  # minor units by currency

WORKFLOWS = ("refund",)  # those whose tasks ask people by a policy
IN_PARALLEL, IN_ORDER = "in_parallel", "in_order"
QUORUM_MOST = 10
REVIEWS_MOST = 5


def limit(limits: Limits, currency: str) -> int | None:
    """The limit for this currency in minor units; None when there is none."""
    return limits.get(currency, limits.get(ANY))


def is_above(limits: Limits, amount_minor: int, currency: str) -> bool:
    """Whether the amount is over the limit. What has no limit is over nothing."""
    bound = limit(limits, currency)
    return bound is not None and amount_minor > bound


@dataclass(frozen=True, slots=True)
class Role:
    """Everybody of a role, up to an amount each may agree to; a currency without one is unbounded."""

    name: str
    up_to: Limits = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Who:
    """Who is meant of those who may decide at all: everybody of these roles and teams, and these people by username;
    or `anyone` of them.
    """

    roles: tuple[Role, ...] = ()
    teams: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    anyone: bool = False

    def __bool__(self) -> bool:
        return bool(self.roles or self.teams or self.people or self.anyone)


@dataclass(frozen=True, slots=True)
class Review:
    """One kind of agreement: so many different people of these. It is needed for amounts above the limit; a currency
    without a limit always needs it.
    """

    name: str
    who: Who
    quorum: int = 1
    above: Limits = field(default_factory=dict)

    def needed(self, amount_minor: int, currency: str) -> bool:
        bound = limit(self.above, currency)
        return bound is None or amount_minor > bound


@dataclass(frozen=True, slots=True)
class Rules:
    """`remind` and `escalate` are hours before the deadline, 0 for not at all. `bulk_up_to`: the largest amount that
    may be decided together with others; without a limit none may.
    """

    reviews: tuple[Review, ...]
    order: str = IN_PARALLEL
    term: Term = field(default_factory=lambda: Term(Kind.ELAPSED, hours=168))
    hours: Hours = field(default_factory=Hours)
    remind: float = 0.0
    escalate: float = 0.0
    escalate_to: Who = field(default_factory=Who)
    password_above: Limits = field(default_factory=dict)  # who approves more has just signed in anew
    bulk_up_to: Limits = field(default_factory=dict)
    forbidden_above: Limits = field(default_factory=dict)

    def needed(self, amount_minor: int, currency: str, *, always: bool = False) -> tuple[Review, ...]:
        """The reviews this amount needs, in their order; with `always` the first of them at least."""
        found = tuple(r for r in self.reviews if r.needed(amount_minor, currency))
        return found or (self.reviews[:1] if always else ())

    def threshold(self, currency: str) -> int | None:
        """Up to this amount nobody is asked; None when people are asked for every one."""
        bounds = [limit(review.above, currency) for review in self.reviews]
        return min((b for b in bounds if b is not None), default=None) if None not in bounds else None

    def forbids(self, amount_minor: int, currency: str) -> bool:
        return is_above(self.forbidden_above, amount_minor, currency)

    def asks_password(self, amount_minor: int, currency: str) -> bool:
        return is_above(self.password_above, amount_minor, currency)

    def in_bulk(self, amount_minor: int, currency: str) -> bool:
        bound = limit(self.bulk_up_to, currency)
        return bound is not None and amount_minor <= bound

    def frozen_for(self, amount_minor: int, currency: str, *, always: bool) -> Rules:
        """What an approval of this amount keeps of them: the reviews that it needs."""
        return replace(self, reviews=self.needed(amount_minor, currency, always=always))


def built_in(threshold_minor: int, deadline: float) -> Rules:
    """What holds in a tenant that has no policy of its own: anyone who may decide, above its threshold in any currency,
    within so many seconds."""
    review = Review("approval", Who(anyone=True), above={ANY: threshold_minor})
    return Rules((review,), term=Term(Kind.ELAPSED, hours=deadline / 3600))
