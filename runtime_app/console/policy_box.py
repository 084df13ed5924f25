"""The rules of one approval as its page tells them: each review with who may, who has, and how many are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals import places, simulation, standing
from approvals.counting import Vote, missing, open_reviews, valid
from approvals.given import parties
from approvals.models import OPEN, Absence, Approval, Decision
from approvals.rules import IN_ORDER, Review, Rules, Who
from approvals.standing import Standing
from runtime_app.console import moments, policy_words
from runtime_app.console.facts import Fact
from runtime_app.console.tags import money_words
from runtime_app.models.columns import RuntimeNow

_NAMED_MOST = 6


@dataclass(frozen=True, slots=True)
class Voice:
    """One agreement. `counts` is False when the person no longer holds what it rested on."""

    decision: Decision
    counts: bool


@dataclass(frozen=True, slots=True)
class Told:
    """A review. `people` are some of those who may still agree, and `more` how many others may."""

    name: str
    who: str
    quorum: int
    voices: tuple[Voice, ...]
    people: tuple[str, ...]
    more: int
    state: str  # done, moving (it is asked now) or waiting (others come first)
    missing: int

    @property
    def lack(self) -> str:
        words = ngettext("%(n)s person is missing", "%(n)s people are missing", self.missing)
        return words % {"n": self.missing}


@dataclass(frozen=True, slots=True)
class Box:
    reviews: tuple[Told, ...]
    lines: tuple[Fact, ...]
    agreed: int
    able: tuple[Standing, ...]  # those whose word would count now
    stuck: bool


def of_approval(asked: Approval, given: Sequence[Decision]) -> Box:
    rules, everybody = places.rules_of(asked), tuple(standing.of_tenant(asked.tenant_id))
    names = {one.username: one.name for one in everybody}
    agreed = [d for d in given if d.verdict == "approve" and d.withdrawn_at is None]
    votes = tuple(Vote(d.person_id, d.review, d.for_person_id) for d in agreed)
    counted = _counted(asked, rules, votes)
    excluded = parties(asked.task.requester_id, asked.task.state)
    taken = excluded | {id for d in given if d.withdrawn_at is None for id in (d.person_id, d.for_person_id) if id}
    also = places.escalated_to(asked, rules)
    now_open = open_reviews(rules, votes) if asked.state == OPEN else ()
    lacking = missing(rules, votes)
    substitutes = _substitutes(asked)

    def told(review: Review) -> Told:
        voices = tuple(
            Voice(d, vote in counted) for d, vote in zip(agreed, votes, strict=True) if d.review == review.name
        )
        may = _may(review, everybody, asked, also)
        free = [_name(one, substitutes) for one in may if one.person_id not in taken]
        state = "done" if review.name not in lacking else "moving" if review in now_open else "waiting"
        who = policy_words.who(_with(review.who, also), names)
        shown = tuple(free[:_NAMED_MOST]) if asked.state == OPEN else ()
        return Told(review.name, who, review.quorum, voices, shown, len(free) - len(shown) if shown else 0, state,
                    lacking.get(review.name, 0))

    able = tuple(one for one in everybody if one.person_id not in taken
                 and any(one in _may(r, everybody, asked, also) for r in now_open))
    return Box(
        tuple(told(review) for review in rules.reviews), tuple(_lines(asked, rules, names)), len(agreed), able,
        asked.state == OPEN and _is_stuck(asked, rules, everybody, excluded, also),
    )


def _counted(asked: Approval, rules: Rules, votes: tuple[Vote, ...]) -> frozenset[Vote]:
    held = standing.of_people([asked.tenant_id], {id for v in votes for id in (v.person_id, v.place)})
    return frozenset(valid(
        rules, votes, held, tenant_id=asked.tenant_id, amount_minor=asked.facts["amount_minor"],
        currency=asked.facts["currency"], excluded=parties(asked.task.requester_id, asked.task.state),
        escalated=asked.escalated_at is not None,
    ))


def _may(review: Review, everybody: Sequence[Standing], asked: Approval, also: Who | None) -> list[Standing]:
    amount, currency = asked.facts["amount_minor"], asked.facts["currency"]
    return [one for one in everybody if one.may(review, amount, currency, also)]


def _is_stuck(
    asked: Approval, rules: Rules, everybody: Sequence[Standing], excluded: frozenset[int], also: Who | None
) -> bool:
    return bool(simulation.lacking(rules, asked.facts, everybody, excluded=excluded, also=also))


def _with(who: Who, also: Who | None) -> Who:
    if also is None:
        return who
    return replace(who, roles=(*who.roles, *also.roles), teams=(*who.teams, *also.teams),
                   people=(*who.people, *also.people), anyone=who.anyone or also.anyone)


def _substitutes(asked: Approval) -> dict[int, str]:
    """Who stands in for whom in the tenant at this moment."""
    running = Absence.objects.filter(
        tenant=asked.tenant_id, starts_at__lte=RuntimeNow(), ends_at__gt=RuntimeNow(), ended_at=None
    )
    return {a.person_id: a.substitute.shown_name for a in running.select_related("substitute")}


def _name(one: Standing, substitutes: Mapping[int, str]) -> str:
    other = substitutes.get(one.person_id)
    return _("%(person)s (away; %(other)s stands in)") % {"person": one.name, "other": other} if other else one.name


def _lines(asked: Approval, rules: Rules, names: Mapping[str, str]) -> list[Fact]:
    amount, currency = asked.facts["amount_minor"], asked.facts["currency"]
    lines = [Fact(_("Why people are asked"), _why(asked, rules))]
    if len(rules.reviews) > 1:
        word = _("one after another, as they stand above") if rules.order == IN_ORDER else _("all at the same time")
        lines.append(Fact(_("Reviews are asked"), word))
    if (requester := asked.task.requester) is not None:
        said = _("who asked for it, or changed it, decides nothing of it: not %(person)s")
        lines.append(Fact(_("Excluded"), said % {"person": requester.shown_name}))
    lines.append(Fact(_("Decide before"), moments.as_moment(asked.deadline_at)))
    lines.append(Fact(_("Without a decision"), _("it is refused, and no money moves")))
    if asked.escalated_at is not None:
        lines.append(Fact(_("Escalated"), _then_also(asked.escalated_at, rules, names)))
    elif asked.escalate_at is not None and rules.escalate_to:
        lines.append(Fact(_("Escalation"), _then_also(asked.escalate_at, rules, names)))
    if asked.remind_at is not None:
        lines.append(Fact(_("Reminder"), moments.as_moment(asked.remind_at)))
    if rules.asks_password(amount, currency):
        lines.append(Fact(_("Password"), _("asked for once more to approve this amount")))
    return lines


def _then_also(at: datetime, rules: Rules, names: Mapping[str, str]) -> SafeString:
    who = _("from then on also: %(who)s") % {"who": policy_words.who(rules.escalate_to, names)}
    return format_html("{}, {}", moments.as_moment(at), who)


def _why(asked: Approval, rules: Rules) -> str:
    if asked.task.state.get("follows"):
        return _("It makes good an earlier refund, which always needs people")
    currency = asked.facts["currency"]
    bound = rules.threshold(currency)
    if bound is None:
        return _("People are asked for every amount")
    return _("The amount is over the threshold of %(limit)s") % {"limit": money_words(bound, currency)}
