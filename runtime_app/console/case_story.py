"""The history of a case as sentences: who said or did what, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runtime_app.console import moments, seen
from runtime_app.console.tags import money_words, printable
from runtime_app.desk import outcomes
from runtime_app.models import CaseEntry, User


@dataclass(frozen=True, slots=True)
class Line:
    at: datetime
    sentence: str
    shape: str
    why: str = ""
    digest: str = ""


_TOLD: dict[str, tuple[str, str | Promise]] = {
    "answered": ("note", gettext_lazy("The answer to what was asked: %(says)s.")),
    "acknowledged": ("done", gettext_lazy("%(who)s acknowledged it as made outside of us.")),
    "closed": ("done", gettext_lazy("%(who)s closed the case: %(outcome)s")),
    "compensated": ("moving", gettext_lazy("%(who)s asked for a new refund of %(amount)s.")),
    "commented": ("note", gettext_lazy("%(who)s wrote:")),
    "exported": ("note", gettext_lazy("%(who)s exported the evidence.")),
}
_ASKED: dict[str, str | Promise] = {
    "query": gettext_lazy("%(who)s asked for a look at the provider."),
    "attach": gettext_lazy("%(who)s named the provider's refund %(ref)s."),
    "cancel": gettext_lazy("%(who)s had the provider asked to cancel it."),
}
_DECLARED: dict[str, str | Promise] = {
    outcomes.NOT_EXECUTED: gettext_lazy("%(who)s declared that it was never executed: %(code)s"),
    outcomes.AS_FOUND: gettext_lazy("%(who)s declared that what was found is what happened: %(code)s"),
}


def told(entries: Iterable[CaseEntry], owners: Mapping[str, str], currency: str) -> list[Line]:
    """Oldest first. `owners` are shown names by username; `currency` of amounts that name none."""
    return [_line(entry, owners, currency) for entry in entries]


def who(person: User | None, actor: str) -> str:
    if person is not None:
        return person.shown_name
    return actor.split(":", 2)[-1] if actor.startswith(("person:", "service:")) else _("The system")


def _line(entry: CaseEntry, owners: Mapping[str, str], currency: str) -> Line:
    data: Mapping[str, Any] = entry.data if isinstance(entry.data, dict) else {}
    takes = entry.person is not None and entry.person.username == data.get("to")
    shape, text = _text(entry.kind, data, takes)
    said = {
        "who": printable(who(entry.person, entry.actor)), "ref": printable(data.get("ref", "")),
        "says": seen.finding(str(data.get("says", ""))).rstrip("."), "kind": printable(entry.kind),
        "outcome": str(outcomes.WORDS.get(str(data.get("outcome")), printable(data.get("outcome", "")))),
        "code": str(outcomes.CODES.get(str(data.get("what")), {}).get(str(data.get("code")), "")),
        "amount": _amount(data, currency), "to": printable(owners.get(str(data.get("to")), data.get("to") or "")),
        "until": _until(data.get("until")),
    }
    why = data.get("reason") or data.get("text") or ""
    return Line(entry.at, str(text) % said, shape, str(why), entry.evidence_sha256)


def _text(kind: str, data: Mapping[str, Any], takes: bool) -> tuple[str, str | Promise]:
    """`takes`: who did it is whom it names."""
    if kind == "asked":
        return "moving", _ASKED.get(str(data.get("what")), _("%(who)s asked for something."))
    if kind == "declared":
        return "doubt", _DECLARED.get(str(data.get("what")), _("%(who)s declared something."))
    if kind == "assigned":
        if not data.get("to"):
            return "note", _("%(who)s left it to nobody.")
        return "note", _("%(who)s took it on.") if takes else _("%(who)s gave it to %(to)s.")
    if kind == "snoozed" and data.get("until"):
        return "waiting", _("%(who)s put it off until %(until)s.")
    if kind == "snoozed":
        return "note", _("%(who)s took it up again.")
    return _TOLD.get(kind, ("note", _("%(who)s: %(kind)s")))


def _amount(data: Mapping[str, Any], currency: str) -> str:
    minor = data.get("amount_minor")
    return money_words(minor, str(data.get("currency") or currency)) if type(minor) is int else ""


def _until(value: Any) -> str:
    """The day, as the tenant's calendar has it."""
    try:
        return moments.as_date(date.fromisoformat(str(value)[:10]))
    except ValueError:
        return printable(value or "")
