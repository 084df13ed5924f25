"""A policy as it is being written: flat text by the place of each field, so that rows are added and nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import time
from typing import Any

from django.http import QueryDict

from approvals.rules import ANY, REVIEWS_MOST, Limits, Review, Rules, Who
from runtime_app.currencies import EXPONENTS
from runtime_app.money import decimal_text

Draft = dict[str, Any]  # text, or a list of it where several may be chosen
ROWS_MOST = 20  # currencies of one limit, roles of one review
LIMITS = ("password_above", "bulk_up_to", "forbidden_above")
_MANY = (".teams", ".people", "hours.days")


def typed(data: QueryDict) -> Draft:
    """What came from the form."""
    return {name: data.getlist(name) if name.endswith(_MANY) else data[name] for name in data}


def count(draft: Mapping[str, Any], place: str, field: str, most: int) -> int:
    """How many rows there are at this place; each always has this field."""
    return next((n for n in range(most) if f"{place}.{n}.{field}" not in draft), most)


def reviews(draft: Mapping[str, Any]) -> int:
    return count(draft, "reviews", "name", REVIEWS_MOST)


def add(draft: Draft, place: str) -> Draft:
    """One more row: a review, a role of a review, or a currency of a limit."""
    more = dict(draft)
    if place == "reviews":
        if (n := reviews(draft)) < REVIEWS_MOST:
            more |= _review(f"reviews.{n}", Review("", Who()))
    elif place.endswith(".roles"):
        if (n := count(draft, place, "name", ROWS_MOST)) < ROWS_MOST:
            more |= {f"{place}.{n}.name": ""} | _limits(f"{place}.{n}.up_to", {})
    elif (n := count(draft, place, "currency", ROWS_MOST)) < ROWS_MOST:
        more |= {f"{place}.{n}.currency": "", f"{place}.{n}.amount": ""}
    return more


def drop_review(draft: Draft, index: int) -> Draft:
    """Without this review; those behind it move up."""
    less: Draft = {}
    for name, value in draft.items():
        head, number, rest = (*name.split(".", 2), "", "")[:3]
        if head != "reviews" or not number.isdigit() or int(number) < index:
            less[name] = value
        elif int(number) > index:
            less[f"reviews.{int(number) - 1}.{rest}"] = value
    return less


def of_rules(rules: Rules) -> Draft:
    draft: Draft = {"order": rules.order}
    for n, review in enumerate(rules.reviews):
        draft |= _review(f"reviews.{n}", review)
    term, hours = rules.term, rules.hours
    draft |= {
        "term.kind": term.kind.value, "term.hours": _number(term.hours), "term.days": str(term.days),
        "term.working_days": "on" if term.working_days else "", "hours.days": [str(day) for day in hours.days],
        "hours.opens": f"{hours.opens:%H:%M}", "hours.closes": "00:00" if hours.closes == time.max else
        f"{hours.closes:%H:%M}", "hours.holidays": "\n".join(day.isoformat() for day in hours.holidays),
        "remind": _number(rules.remind), "escalate": _number(rules.escalate),
    }
    draft |= _who("escalate_to", rules.escalate_to)
    for name in LIMITS:
        draft |= _limits(name, getattr(rules, name))
    return draft


def _review(place: str, review: Review) -> Draft:
    named = {f"{place}.name": review.name, f"{place}.quorum": str(review.quorum)}
    return named | _limits(f"{place}.above", review.above) | _who(f"{place}.who", review.who)


def _who(place: str, who: Who) -> Draft:
    draft: Draft = {f"{place}.teams": list(who.teams), f"{place}.people": list(who.people)}
    if who.anyone:
        draft[f"{place}.anyone"] = "on"
    for n, role in enumerate(who.roles):
        draft |= {f"{place}.roles.{n}.name": role.name} | _limits(f"{place}.roles.{n}.up_to", role.up_to)
    return draft if who.roles else add(draft, f"{place}.roles")


def _limits(place: str, limits: Limits) -> Draft:
    draft: Draft = {f"{place}.any": str(limits[ANY]) if ANY in limits else ""}
    for n, code in enumerate(sorted(code for code in limits if code in EXPONENTS)):
        draft |= {f"{place}.{n}.currency": code, f"{place}.{n}.amount": decimal_text(limits[code], code)}
    return draft


def _number(n: float) -> str:
    return str(int(n)) if n == int(n) else str(n)
