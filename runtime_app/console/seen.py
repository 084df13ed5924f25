"""Evidence put together for reading: who said what, when, how completely, with the digest of what was seen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runtime_app.console import story
from runtime_app.console.tags import printable
from runtime_app.models import Call, Evidence

BODY_MOST = 8_000  # characters of an answer that a page shows; the export has it whole
_FINDING_MOST = 40  # characters of a finding that are stored; one of just so many was cut
_LIKE_IT = 3  # so many findings in a row that tell the same are folded into one line


@dataclass(frozen=True, slots=True)
class Line:
    at: datetime
    sentence: str
    shape: str
    source: str
    facts: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    body: str = ""
    complete: bool = True
    hint: bool = False  # it never proves anything, however complete


@dataclass(slots=True)
class Group:
    """Lines of one day that tell the same: the first, the last, and those between them folded away."""

    first: Line
    between: list[Line] = field(default_factory=list)
    last: Line | None = None


@dataclass(slots=True)
class Day:
    at: datetime
    groups: list[Group] = field(default_factory=list)


SOURCES: dict[str, str | Promise] = {
    "provider_response": gettext_lazy("answer to a request"),
    "provider_query": gettext_lazy("look at the provider"),
    "webhook_verified": gettext_lazy("signed notice of the provider"),
    "statement_line": gettext_lazy("line of a statement"),
    "statement_file": gettext_lazy("statement file"),
    "human_attestation": gettext_lazy("word of people"),
}
_SENTENCES: dict[str, str | Promise] = {
    "provider_response": gettext_lazy("The answer to our request: %(finding)s."),
    "provider_query": gettext_lazy("The provider was asked: %(finding)s."),
    "webhook_verified": gettext_lazy("The provider told us by itself: %(finding)s."),
    "statement_line": gettext_lazy("%(finding)s."),
    "statement_file": gettext_lazy("A statement file: %(finding)s."),
    "human_attestation": gettext_lazy("Two people: %(finding)s."),
}
_SHAPES = {
    "found_succeeded": "done", "succeeded": "done", "found_pending": "moving", "pending": "moving",
    "found_failed": "crossed", "absent": "note", "inconclusive": "waiting", "no_lookup": "waiting",
    "found_mismatch": "doubt", "found_duplicate": "doubt", "lookalikes": "doubt", "external_refund": "doubt",
    "declared_not_executed": "crossed", "recorded_as_found": "done",
}


def code(value: str) -> str:
    """The code of a finding; that of an answer's sentence, where it has one."""
    return "found_mismatch" if value.startswith("the provider's refund differs") else value


def finding(value: str) -> str:
    """What was found, in words; a provider's own word as it is."""
    value = code(value)
    if value.startswith("says_") and value not in story.FINDINGS:
        return _("it says “%(word)s”; that is a hint, so it is asked") % {"word": printable(value[5:])}
    stage, colon, _cause = value.partition(": ")
    known = story.FINDINGS.get(value) or (story.CAUSES.get(stage) if colon else None)
    return str(known) if known else printable(value) + ("…" if len(value) == _FINDING_MOST else "")


def told(evidence: Iterable[Evidence]) -> list[Day]:
    """Oldest first, by day in the reader's zone."""
    days: list[Day] = []
    run: list[Line] = []
    for each in evidence:
        line = _line(each)
        if run and (_day(run[-1]) != _day(line) or run[-1].sentence != line.sentence):
            _close(days, run)
            run = []
        run.append(line)
    _close(days, run)
    return days


def _day(line: Line) -> Any:
    return timezone.localtime(line.at).date()


def _close(days: list[Day], run: Sequence[Line]) -> None:
    if not run:
        return
    if not days or timezone.localtime(days[-1].at).date() != _day(run[0]):
        days.append(Day(run[0].at))
    if len(run) < _LIKE_IT:
        days[-1].groups += [Group(line) for line in run]
    else:
        days[-1].groups.append(Group(run[0], list(run[1:-1]), run[-1]))


def _line(evidence: Evidence) -> Line:
    sentence = str(_SENTENCES.get(evidence.kind, "%(finding)s.")) % {"finding": finding(evidence.finding).rstrip(".")}
    return Line(
        at=evidence.observed_at, sentence=sentence[:1].upper() + sentence[1:], digest=evidence.body_sha256,
        shape=_SHAPES.get(code(evidence.finding), "note"),
        source=str(SOURCES.get(evidence.kind, printable(evidence.kind))),
        facts=tuple((label, printable(value)) for label, value in _facts(evidence) if value), body=_body(evidence.body),
        complete=evidence.complete, hint=evidence.kind == "webhook_verified",
    )


def _facts(evidence: Evidence) -> Iterable[tuple[str, str]]:
    yield _("found"), evidence.finding
    yield _("asked"), evidence.request_line
    yield _("status"), str(evidence.http_status or "")
    yield _("provider's request id"), evidence.provider_request_id
    pages = ngettext("complete, %(n)s page", "complete, %(n)s pages", evidence.pages) % {"n": evidence.pages}
    yield _("how complete"), pages if evidence.complete else _("not complete: it proves nothing")
    yield _("consistency"), evidence.consistency
    yield _("adapter"), evidence.adapter_version
    yield _("version of the API"), evidence.api_version
    yield _("digest"), evidence.body_sha256
    yield _("evidence"), str(evidence.pk)


def _body(body: Any) -> str:
    if body is None:
        return ""
    text = json.dumps(body, indent=2, ensure_ascii=False, sort_keys=True)
    cut = text if len(text) <= BODY_MOST else text[:BODY_MOST] + "\n…"
    return "\n".join(printable(line) for line in cut.split("\n"))


CALLS: dict[str, str | Promise] = {
    "submit": gettext_lazy("Sent"), "resend": gettext_lazy("Sent again, same key"), "query": gettext_lazy("Asked"),
    "cancel": gettext_lazy("Asked to cancel"),
}
OUTCOMES: dict[str, str | Promise] = {
    "succeeded": gettext_lazy("done"), "pending": gettext_lazy("accepted, not settled"),
    "declined": gettext_lazy("refused"), "not_sent": gettext_lazy("not sent"), "unknown": gettext_lazy("not known"),
}


def calls(made: Iterable[Call]) -> list[dict[str, Any]]:
    """Calls as a table tells them."""
    return [
        {"started_at": call.started_at, "word": CALLS.get(call.kind, call.kind),
         "outcome": OUTCOMES.get(call.outcome or "", _("no answer recorded")),
         "finding": finding(call.finding) if call.finding else "—",
         "took": call.ended_at - call.started_at if call.ended_at else None}
        for call in made
    ]
