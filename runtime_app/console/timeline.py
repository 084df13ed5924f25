"""Events put together for reading: sentences by day, gaps as gaps, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runtime_app.console import moments, story, words
from runtime_app.console.tags import money_words
from runtime_app.models import Event, EventPayload, ServiceAccount, Step, Task, User

_GAP = timedelta(minutes=1)  # a wait worth a line of its own
NOTHING_SAID = b"\xe3\xb0\xc4\x42\x98\xfc\x1c\x14"  # how the digest of an empty payload begins


@dataclass(frozen=True, slots=True)
class Line:
    at: datetime | None
    sentence: str = ""
    shape: str = "note"
    why: str = ""
    detail: tuple[tuple[str, str], ...] = ()
    gap: str = ""


@dataclass(slots=True)
class Day:
    at: datetime
    lines: list[Line] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Split:
    """Seconds, and their shares of a bar of 100."""

    queue: float
    active: float
    outside: float

    @property
    def total(self) -> float:
        return self.queue + self.active + self.outside

    def _share(self, part: float) -> float:
        return 100 * part / self.total if self.total else 0.0

    queue_share = property(lambda self: self._share(self.queue))
    active_share = property(lambda self: self._share(self.active))
    outside_share = property(lambda self: self._share(self.outside))
    before_outside = property(lambda self: self._share(self.queue + self.active))


# What a task waits for after an event: the last of these that was said is what a gap was spent on.
_WAITS: dict[str, str | Promise] = {
    "task.opened": gettext_lazy("for a worker"),
    "task.waiting_input": gettext_lazy("for input"),
    "task.input_given": gettext_lazy("for a worker"),
    "task.amended": gettext_lazy("for a worker"),
    "task.ready": gettext_lazy("for a worker"),
    "task.judged_anew": gettext_lazy("for a worker"),
    "task.postponed": gettext_lazy("for the next try"),
    "task.parked": gettext_lazy("parked"),
    "task.unparked": gettext_lazy("for a worker"),
    "approval.requested": gettext_lazy("for an approver"),
    "operation.submitted": gettext_lazy("for the provider"),
    "operation.not_sent": gettext_lazy("for the next try"),
    "operation.unknown": gettext_lazy("for the provider's truth"),
    "operation.pending": gettext_lazy("for the money to land"),
}
_OUTSIDE = frozenset({
    "task.waiting_input", "approval.requested", "operation.submitted", "operation.unknown", "operation.pending",
})


@dataclass(frozen=True, slots=True)
class Told:
    """One event with its payload, None when retention has removed it."""

    event: Event
    data: Mapping[str, Any] | None


def read(task: Task) -> list[Told]:
    """The task's events in order, with their payloads."""
    events = list(Event.objects.filter(task=task).order_by("seq"))  # first: one that comes meanwhile is not half told
    payloads = dict(EventPayload.objects.filter(task=task).values_list("seq", "data"))
    return [Told(e, payloads.get(e.seq)) for e in events]


def names(told: Iterable[Told]) -> dict[str, str]:
    """How each actor of these events is called: `person:…` by shown name, `service:…` by name."""
    parsed = {actor: actor.split(":", 2) for actor in {t.event.actor for t in told}}
    people = User.objects.in_bulk([int(p[1]) for p in parsed.values() if p[0] == "person" and p[1].isdigit()])
    accounts = {str(a.pk): a.name for a in ServiceAccount.objects.filter(
        pk__in=[p[1] for p in parsed.values() if p[0] == "service" and len(p) == 3])}
    called = {}
    for actor, (kind, *rest) in parsed.items():
        if kind == "person" and rest:
            found = people.get(int(rest[0])) if rest[0].isdigit() else None
            called[actor] = found.shown_name if found else rest[-1]
        elif kind == "service" and rest:
            called[actor] = accounts.get(rest[0], rest[-1])
        else:
            called[actor] = _("The system")
    return called


def tell(task: Task, told: Sequence[Told], beside: Sequence[Line] = ()) -> list[Day]:
    """The story, by day in the reader's zone, newest last. `beside` are lines that are no events, in their order."""
    called = names(told)
    if told and (both := _on_behalf(task, told, called)):
        called = {**called, told[0].event.actor: both}
    days: list[Day] = []
    last: datetime | None = None
    waits, left = "", list(beside)
    for each in told:
        while left and left[0].at is not None and left[0].at < each.event.at:
            _put(days, left.pop(0))
        if last is not None and each.event.at - last >= _GAP and days:
            days[-1].lines.append(Line(None, gap=_gap(each.event.at - last, waits)))
        _put(days, _line(task, each, called))
        waits = str(_WAITS.get(each.event.type, waits))
        last = each.event.at
    for line in left:
        _put(days, line)
    return days


def _put(days: list[Day], line: Line) -> None:
    if line.at is not None and (not days or _day(days[-1].at) != _day(line.at)):
        days.append(Day(line.at))
    days[-1].lines.append(line)


def _on_behalf(task: Task, told: Sequence[Told], called: Mapping[str, str]) -> str:
    """The person behind an application's request, when the request itself named one."""
    named_later = any("on_behalf_of" in (t.data or {}) for t in told[1:])
    if task.requester is None or named_later or not told[0].event.actor.startswith("service:"):
        return ""
    said = {"person": task.requester.shown_name, "application": called[told[0].event.actor]}
    return _("%(person)s, through %(application)s,") % said


def _day(at: datetime) -> date:
    return timezone.localtime(at).date()


def _gap(length: timedelta, waits: str) -> str:
    return _("waited %(time)s %(waits)s") % {"time": moments.as_duration(length), "waits": waits}


def _line(task: Task, told: Told, called: Mapping[str, str]) -> Line:
    event, data = told.event, told.data or {}
    telling = story.STORY.get(event.type, story.UNKNOWN)
    amended = (data.get("changes") or {}).get("reason", {}).get("now")
    coded = event.type in {"task.parked", "task.unparked"}  # their reason is a code, which the sentence says in words
    said = {name: data[name] for name in ("reason", "answer") if isinstance(data.get(name), str) and not coded}
    said |= {"amended": amended} if isinstance(amended, str) else {}
    said |= {"why": str(data["why"])} if event.type == "task.cancel_wished" and data.get("why") else {}
    return Line(
        at=event.at,
        shape=telling.shape,
        sentence=telling.sentence(_words(task, told, called)),
        why="\n".join(said.values()),
        detail=_detail(told),
    )


def _words(task: Task, told: Told, called: Mapping[str, str]) -> dict[str, str]:
    """Every word a sentence may ask for; empty when this event does not know it."""
    data = told.data or {}
    currency = data.get("currency") or task.currency
    amount = data.get("amount_minor")
    if told.event.type == "operation.succeeded" and amount is None:
        amount = task.amount_minor
    elif told.event.type == "task.amended":
        amount = (data.get("changes") or {}).get("amount_minor", {}).get("now")
    kind = told.event.actor.partition(":")[0]
    fields: list[Any] = data["fields"] if isinstance(data.get("fields"), list) else []
    named = ", ".join(str(label) for name, label in story.FACTS.items() if name in fields)
    stage, _colon, _cause = str(data.get("why") or "").partition(": ")
    threshold = data.get("threshold_minor") if not task.state.get("follows") else None
    why = str(data.get("why") or "")
    found = str(data.get("finding") or "")
    finding = str(story.FINDINGS.get(found, found))
    return {
        "who": called[told.event.actor],
        "person": called[told.event.actor] if kind in {"person", "service"} else "",
        "amount": money_words(amount, currency) if type(amount) is int and currency else "",
        "threshold": money_words(threshold, currency) if type(threshold) is int and currency else "",
        "order": task.order_ref,
        "payment": str(data.get("payment_ref") or ""),
        "why": str(data.get("why") or "").rstrip(".") + ("." if _ends(told) else "") if data.get("why") else "",
        "cause": str(story.CAUSES.get(stage, why)).rstrip("."),
        "differs": why.rstrip(".") if why.startswith("the provider's refund") else "",
        "always": str(story.ALWAYS) if task.state.get("follows") else "",
        "asks": named,
        "given": named,
        "parked": str(words.PARKED.get(str(data.get("reason")), "")).partition(": ")[2],
        "step": str(data.get("step") or ""),
        "version": str(data.get("version") or ""),
        "changed": ", ".join(str(story.FACTS.get(f, f)) for f in data.get("changed") or []),
        "provider_ref": str(data.get("provider_ref") or ""),
        "code": str(data.get("code") or "").replace("_", " "),
        "finding": finding,
        "judged": finding if told.event.type == "operation.checked" and found.startswith("resend_") else "",
        "case": str(story.CASES.get(str(data.get("class")), data.get("why") or "")),
    }


def _ends(told: Told) -> bool:
    """Whether the sentence of this event ends with its reason, so that the reason brings the full stop."""
    return told.event.type in {"task.failed", "task.judged_anew", "approval.superseded"}


def _detail(told: Told) -> tuple[tuple[str, str], ...]:
    event = told.event
    lines = [
        (_("event"), f"{event.seq} · {event.type}"),
        (_("by"), event.actor),
        (_("at"), event.at.astimezone(UTC).isoformat()),
    ]
    if told.data:
        lines += [(name, _plain(value)) for name, value in told.data.items()]
    elif not bytes(event.payload_sha256).startswith(NOTHING_SAID):
        lines.append((_("payload"), _("removed by retention; its digest is kept")))
    return (*lines, (_("digest"), bytes(event.payload_sha256).hex()), (_("chain"), bytes(event.chain).hex()))


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {v}" for k, v in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def split(told: Sequence[Told], steps: Iterable[Step], now: datetime, *, over: bool) -> Split | None:
    """Where the time went until the end, or until now: waiting outside, at work, and the rest in the queue."""
    if not told:
        return None
    outside, mark = timedelta(), ""
    ends = [*(t.event.at for t in told[1:]), told[-1].event.at if over else max(now, told[-1].event.at)]
    for each, end in zip(told, ends, strict=True):
        mark = each.event.type if each.event.type in _WAITS else mark
        if mark in _OUTSIDE:
            outside += max(timedelta(), end - each.event.at)
    total = max(0.0, (ends[-1] - told[0].event.at).total_seconds())
    waited = min(total, outside.total_seconds())
    active = min(total - waited, sum(step.active_ms for step in steps) / 1000)
    return Split(queue=max(0.0, total - waited - active), active=active, outside=waited)
