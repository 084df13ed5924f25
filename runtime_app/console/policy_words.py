"""The rules of a policy in words, line by line, and two versions of them beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.dates import WEEKDAYS_ABBR
from django.utils.formats import date_format, number_format, time_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.calendars import Hours, Kind, Term
from approvals.rules import ANY, IN_ORDER, Limits, Review, Rules, Who
from runtime_app.console.context import role_word
from runtime_app.console.tags import money_text

Names = Mapping[str, str]  # shown names by username


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that the rules say. `key` is the same in every version that says something of it."""

    key: str
    label: str
    value: str


def lines(rules: Rules, names: Names) -> list[Line]:
    """Everything the rules say, in the order in which it matters."""
    found = [line for review in rules.reviews for line in _review(review, names)]
    if len(rules.reviews) > 1:
        word = _("one after another, as they stand here") if rules.order == IN_ORDER else _("all at the same time")
        found.append(Line("order", _("Reviews are asked"), word))
    found.append(Line("term", _("Time to decide"), term(rules.term)))
    found.append(Line("hours", _("Working time"), hours(rules.hours)))
    found.append(Line("remind", _("Reminder"), before(rules.remind)))
    found.append(Line("escalate", _("Escalation"), _escalation(rules, names)))
    never, above = _("never"), _("above %s")
    found.append(Line("password", _("Asks for the password again"), limits(rules.password_above, above, never)))
    found.append(Line("bulk", _("May be decided together"), limits(rules.bulk_up_to, _("up to %s"), never)))
    found.append(Line("forbidden", _("Refused without asking"), limits(rules.forbidden_above, above, never)))
    return found


def _review(review: Review, names: Names) -> list[Line]:
    people = ngettext("%(n)s person of: %(who)s", "%(n)s people of: %(who)s", review.quorum)
    agree = people % {"n": review.quorum, "who": who(review.who, names)}
    name = {"name": review.name}
    return [
        Line(f"review:{review.name}", _("The review “%(name)s”") % name, agree),
        Line(f"above:{review.name}", _("“%(name)s” is asked for") % name,
             limits(review.above, _("above %s"), _("every amount"))),
    ]


def limits(said: Limits, word: str, otherwise: str) -> str:
    """Amounts by currency, each put into `word`; `otherwise` is what holds where there is no limit."""
    named = [word % f"{money_text(said[code], code)} {code}" for code in sorted(said) if code != ANY]
    if ANY in said:
        example = {"n": number_format(said[ANY], force_grouping=True), "as": f"{money_text(said[ANY], 'EUR')} EUR"}
        amount = _("%(n)s minor units (as in %(as)s)") % example
        rest = _("%s in any other currency") if named else _("%s in any currency")
        return "; ".join([*named, rest % (word % amount)])
    return "; ".join([*named, _("%s in any other currency") % otherwise]) if named else otherwise


def who(said: Who, names: Names) -> str:
    if said.anyone:
        return _("everybody who may decide")
    people = [_role(role.name, role.up_to) for role in said.roles]
    people += [_("team %(name)s") % {"name": ref} for ref in said.teams]
    people += [names.get(username, username) for username in said.people]
    return ", ".join(people) or _("nobody")


def _role(name: str, up_to: Limits) -> str:
    word = _("role %(name)s") % {"name": role_word(name)}
    return f"{word} ({limits(up_to, _('up to %s'), _('any amount'))})" if up_to else word


def term(said: Term) -> str:
    if said.kind is not Kind.END_OF_DAY:
        words = {"n": _number(said.hours)}
        return (_("%(n)s hours") if said.kind is Kind.ELAPSED else _("%(n)s working hours")) % words
    if said.days == 0:
        return _("until the end of the working day") if said.working_days else _("until the end of the day")
    days = (
        ngettext("%(n)s working day", "%(n)s working days", said.days) if said.working_days
        else ngettext("%(n)s day", "%(n)s days", said.days)
    ) % {"n": said.days}
    return _("until the end of the day, %(days)s later") % {"days": days}


def hours(said: Hours) -> str:
    days = _days(said.days)
    closes = "24:00" if said.closes.second else time_format(said.closes, "H:i")
    text = _("%(days)s, %(opens)s to %(closes)s") % {
        "days": days, "opens": time_format(said.opens, "H:i"), "closes": closes}
    if not said.holidays:
        return text
    off = ", ".join(date_format(day, _("j M Y")) for day in said.holidays)
    return _("%(hours)s; not on %(off)s") % {"hours": text, "off": off}


def _days(days: Sequence[int]) -> str:
    """Three or more days in a row as the first and the last of them."""
    runs: list[list[int]] = []
    for day in sorted(days):
        if runs and runs[-1][-1] == day - 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    words = [
        _("%(first)s to %(last)s") % {"first": WEEKDAYS_ABBR[run[0]], "last": WEEKDAYS_ABBR[run[-1]]} if len(run) > 2
        else ", ".join(str(WEEKDAYS_ABBR[day]) for day in run) for run in runs
    ]
    return ", ".join(words)


def before(n: float) -> str:
    return _("%(n)s hours before the end") % {"n": _number(n)} if n else _("none")


def _escalation(rules: Rules, names: Names) -> str:
    if not rules.escalate:
        return _("none")
    said = {"when": before(rules.escalate), "who": who(rules.escalate_to, names)}
    return _("%(when)s, also: %(who)s") % said


def _number(n: float) -> str:
    return number_format(int(n) if n == int(n) else round(n, 2))


def diff(then: Rules | None, now: Rules, names: Names) -> list[dict[str, Any]]:
    """Both versions line by line; what only one of them says stands beside a dash."""
    old = {line.key: line for line in lines(then, names)} if then is not None else {}
    new = {line.key: line for line in lines(now, names)}
    keys = [*new, *(key for key in old if key not in new)]
    found = []
    for key in keys:
        was, will = old.get(key), new.get(key)
        row = {"label": (will or old[key]).label, "then": was.value if was else "—", "now": will.value if will else "—"}
        found.append(row | {"changed": row["then"] != row["now"]})
    return found
