"""Where a person stands to one approval: in which review, in whose place, or why not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from approvals import absences, standing
from approvals.counting import Vote, open_reviews
from approvals.given import parties
from approvals.models import Approval, Decision
from approvals.rules import Review, Rules, Who
from approvals.rules_json import frozen
from approvals.standing import Standing
from runtime_app import access
from runtime_app.models import User


@dataclass(frozen=True, slots=True)
class Place:
    """The review in which the person's word counts now, and who is away and stood for, if anybody."""

    review: str
    standing: Standing
    for_person: User | None = None

    @property
    def basis(self) -> dict[str, Any]:
        """What the right rests on, as it is stored with the decision."""
        said: dict[str, Any] = {
            "roles": sorted(self.standing.roles), "teams": sorted(self.standing.teams), "review": self.review,
        }
        return said | ({"for": self.for_person.username} if self.for_person is not None else {})


def rules_of(asked: Approval) -> Rules:
    """The rules it was asked under."""
    return frozen(asked.rules, asked.quorum)


def agreed(asked: Approval) -> tuple[Vote, ...]:
    """The agreements so far that were not taken back."""
    found = Decision.objects.filter(approval=asked, verdict="approve", withdrawn_at=None).order_by("decided_at", "id")
    return tuple(Vote(*vote) for vote in found.values_list("person_id", "review", "for_person_id"))


def excluded(person: User, asked: Approval) -> str | None:
    """Why this person decides nothing here whatever the rules say; None when that is not so."""
    if not access.may(person, asked.tenant_id, "decide_approvals"):
        return "You may see approvals here, but not decide them."
    if asked.task.requester_id == person.pk:
        return "You asked for this yourself; somebody else must decide it."
    if person.pk in asked.task.state.get("shaped_by", ()):
        return "You changed this request yourself; somebody else must decide it."
    return None


def has_spoken(person: User, asked: Approval) -> bool:
    return Decision.objects.filter(approval=asked, person=person, withdrawn_at=None).exists()


def place(person: User, asked: Approval) -> Place | str:
    """The person's place in the approval now, or why there is none."""
    if (problem := excluded(person, asked)) is not None:
        return problem
    if has_spoken(person, asked):
        return "You have decided this already."
    rules, votes = rules_of(asked), agreed(asked)
    away = {a.person_id: a.person for a in absences.stood_for(person, asked.tenant_id)}
    held = standing.of_people([asked.tenant_id], [person.pk, *away])
    reviews = open_reviews(rules, votes)
    own = held.get((asked.tenant_id, person.pk))
    if own is not None and (review := _first(own, reviews, asked, rules)) is not None:
        return Place(review.name, own)
    if own is not None:
        spoken = {one for vote in votes for one in (vote.person_id, vote.place)}
        spoken |= parties(asked.task.requester_id, asked.task.state)
        for other in (one for id, one in away.items() if id not in spoken):
            theirs = held.get((asked.tenant_id, other.pk))
            if theirs is not None and (review := _first(theirs, reviews, asked, rules)) is not None:
                return Place(review.name, own, other)
    return _why_none(own, rules, asked)


def _first(one: Standing, reviews: Iterable[Review], asked: Approval, rules: Rules) -> Review | None:
    amount, currency, also = asked.facts["amount_minor"], asked.facts["currency"], escalated_to(asked, rules)
    return next((r for r in reviews if one.may(r, amount, currency, also)), None)


def escalated_to(asked: Approval, rules: Rules) -> Who | None:
    return rules.escalate_to if asked.escalated_at is not None else None


def _why_none(own: Standing | None, rules: Rules, asked: Approval) -> str:
    if own is not None and (review := _first(own, rules.reviews, asked, rules)) is not None:
        return f"The {review.name} review is not open now; others have to decide first, or have decided it."
    return "The policy asks others to decide this."
