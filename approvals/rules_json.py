"""Rules as JSON, for the database and the form: written in one shape, read strictly, every error named by its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date, time
from typing import Any, TypeVar

from approvals.calendars import Hours, Kind, Term
from approvals.rules import ANY, IN_ORDER, IN_PARALLEL, QUORUM_MOST, REVIEWS_MOST, Limits, Review, Role, Rules, Who
from runtime_app.errors import FieldErrors
from runtime_app.money import MAX_MINOR, check_currency
from runtime_app.roles import ROLES
from runtime_app.texts import check_text

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)
_HOURS_MOST = 24 * 366
_DAYS_MOST = 366
_LIST_MOST = 100
T = TypeVar("T")


def dump(rules: Rules) -> dict[str, Any]:
    said = asdict(rules)
    said["term"]["kind"] = rules.term.kind.value
    said["hours"] = {
        "days": list(rules.hours.days), "opens": _clock(rules.hours.opens), "closes": _clock(rules.hours.closes),
        "holidays": [d.isoformat() for d in rules.hours.holidays],
    }
    return said


def _clock(at: time) -> str:
    """The time of day as people write it, with seconds only where there are some."""
    return at.isoformat("auto" if at.second or at.microsecond else "minutes")


def load(said: object) -> Rules:
    """The rules of this JSON. Raises FieldErrors with every place that is wrong, for example `reviews.0.quorum`."""
    reader = _Reader()
    rules = reader.rules(said)
    if reader.errors:
        raise FieldErrors(reader.errors)
    return rules


def frozen(said: object, quorum: int) -> Rules:
    """The rules that an approval was asked under; of one that a release without them has asked, so many people."""
    if said:
        return load(said)
    return Rules((Review("approval", Who(anyone=True), quorum),))


class _Reader:
    def __init__(self) -> None:
        self.errors: dict[str, str] = {}

    def wrong(self, place: str, sentence: str, instead: T) -> T:
        self.errors.setdefault(place, sentence)
        return instead

    def rules(self, said: object) -> Rules:
        one = self.mapping(said, "rules", {
            "reviews", "order", "term", "hours", "remind", "escalate", "escalate_to", "password_above", "bulk_up_to",
            "forbidden_above"})
        reviews = self.many(one.get("reviews"), "reviews", self.review, REVIEWS_MOST)
        if not reviews:
            self.wrong("reviews", "Name at least one review.", None)
        names = [review.name for review in reviews]
        for index, name in enumerate(names):
            if name in names[:index]:
                self.wrong(f"reviews.{index}.name", "Another review has this name.", None)
        order = one.get("order", IN_PARALLEL)
        if order not in (IN_PARALLEL, IN_ORDER):
            self.wrong("order", f"Use {IN_PARALLEL} or {IN_ORDER}.", None)
        escalate = self.number(one.get("escalate", 0), "escalate", _HOURS_MOST)
        escalate_to = self.who(one.get("escalate_to", {}), "escalate_to")
        if bool(escalate) != bool(escalate_to):
            self.wrong("escalate_to", "Say both when it is escalated and to whom, or neither.", None)
        return Rules(
            tuple(reviews), str(order), self.term(one.get("term")), self.hours(one.get("hours", {})),
            self.number(one.get("remind", 0), "remind", _HOURS_MOST), escalate, escalate_to,
            *(self.limits(one.get(name, {}), name) for name in ("password_above", "bulk_up_to", "forbidden_above")),
        )

    def review(self, said: object, place: str) -> Review:
        one = self.mapping(said, place, {"name", "who", "quorum", "above"})
        who = self.who(one.get("who"), f"{place}.who")
        if not who:
            self.wrong(f"{place}.who", "Say who may decide: a role, a team or a person.", None)
        return Review(
            self.name(one.get("name"), f"{place}.name"), who,
            self.whole(one.get("quorum", 1), f"{place}.quorum", 1, QUORUM_MOST),
            self.limits(one.get("above", {}), f"{place}.above"),
        )

    def who(self, said: object, place: str) -> Who:
        one = self.mapping(said, place, {"roles", "teams", "people", "anyone"})
        if not isinstance(one.get("anyone", False), bool):
            self.wrong(f"{place}.anyone", "Use true or false.", None)
        return Who(
            tuple(self.many(one.get("roles", []), f"{place}.roles", self.role)),
            tuple(self.many(one.get("teams", []), f"{place}.teams", self.name)),
            tuple(self.many(one.get("people", []), f"{place}.people", self.username)), one.get("anyone") is True,
        )

    def role(self, said: object, place: str) -> Role:
        one = self.mapping(said, place, {"name", "up_to"})
        name = one.get("name")
        if not isinstance(name, str) or name not in ROLES:
            name = self.wrong(place, "There is no such role.", "")
        return Role(name, self.limits(one.get("up_to", {}), f"{place}.up_to"))

    def term(self, said: object) -> Term:
        one = self.mapping(said, "term", {"kind", "hours", "days", "working_days"})
        if one.get("kind") not in [kind.value for kind in Kind]:
            return self.wrong("term.kind", "Say how long people have: elapsed, working or end_of_day.",
                              Term(Kind.ELAPSED, hours=1))
        kind = Kind(one["kind"])
        hours = self.number(one.get("hours", 0), "term.hours", _HOURS_MOST)
        if kind is not Kind.END_OF_DAY and hours <= 0:
            self.wrong("term.hours", "A deadline that has passed when it is set leaves nobody time to decide.", None)
        working_days = one.get("working_days", True)
        if not isinstance(working_days, bool):
            self.wrong("term.working_days", "Use true or false.", None)
        days = self.whole(one.get("days", 0), "term.days", 0, _DAYS_MOST)
        return Term(kind, hours=hours, days=days, working_days=working_days is True)

    def hours(self, said: object) -> Hours:
        one = self.mapping(said, "hours", {"days", "opens", "closes", "holidays"})
        default = Hours()
        days = self.many(one.get("days", list(default.days)), "hours.days", lambda v, p: self.whole(v, p, 0, 6))
        if not days:
            self.wrong("hours.days", "Name at least one working day.", None)
        opens = self.iso(one.get("opens"), "hours.opens", time.fromisoformat, default.opens)
        closes = self.iso(one.get("closes"), "hours.closes", time.fromisoformat, default.closes)
        if (opens.tzinfo, closes.tzinfo) != (None, None):
            return self.wrong("hours.opens", "Use times of day without a zone; they are the tenant's.", default)
        if opens >= closes:
            return self.wrong("hours.closes", "The day must close after it opens.", default)
        holidays = self.many(one.get("holidays", []), "hours.holidays",
                             lambda v, p: self.iso(v, p, date.fromisoformat, date.min))
        return Hours(tuple(sorted(set(days))), opens, closes, tuple(sorted(set(holidays))))

    def iso(self, said: object, place: str, parse: Callable[[str], T], default: T) -> T:
        if said is None:
            return default
        try:
            return parse(said if isinstance(said, str) else "")
        except ValueError:
            return self.wrong(place, "Use the form 09:00 for times and 2026-12-25 for days.", default)

    def limits(self, said: object, place: str) -> Limits:
        found: dict[str, int] = {}
        for currency, amount in self.mapping(said, place, None).items():
            try:
                code = ANY if currency == ANY else check_currency(currency)
            except FieldErrors:
                self.wrong(f"{place}.{currency}"[:100], "There is no such currency.", None)
                continue
            found[code] = self.whole(amount, f"{place}.{code}", 0, MAX_MINOR)
        return found

    def mapping(self, said: object, place: str, known: set[str] | None) -> Mapping[str, Any]:
        if not isinstance(said, dict):
            return self.wrong(place, "This is missing, or has another shape.", {})
        for name in said if known is not None else ():
            if name not in (known or ()):
                self.wrong(f"{place}.{name}"[:100], "There is no such field.", None)
        return said

    def many(self, said: object, place: str, read: Callable[[Any, str], T], most: int = _LIST_MOST) -> list[T]:
        if not isinstance(said, list | tuple) or len(said) > most:
            return self.wrong(place, f"Use a list of at most {most}.", [])
        return [read(each, f"{place}.{index}") for index, each in enumerate(said)]

    def whole(self, said: object, place: str, least: int, most: int) -> int:
        if type(said) is not int or not least <= said <= most:
            return self.wrong(place, f"Use a whole number from {least} to {most}.", least)
        return said

    def number(self, said: object, place: str, most: float) -> float:
        if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= most:
            return self.wrong(place, f"Use a number from 0 to {most:g}.", 0.0)
        return float(said)

    def name(self, said: object, place: str) -> str:
        if not isinstance(said, str) or not _NAME.fullmatch(said):
            return self.wrong(place, "Use small letters, digits, - and _, beginning with a letter.", "")
        return said

    def username(self, said: object, place: str) -> str:
        try:
            return check_text(said, place, most=150) or self.wrong(place, "Name a person.", "")
        except FieldErrors as refused:
            return self.wrong(place, refused.errors[place], "")
