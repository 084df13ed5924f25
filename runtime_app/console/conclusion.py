"""What is known of an operation or of a case, in a few sentences: what was seen, what is still possible, until when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runtime_app.console import moments, sides, story
from runtime_app.console.tags import money_words, printable
from runtime_app.models import Operation, Task
from runtime_app.states import UNRESOLVED, OperationState


@dataclass(frozen=True, slots=True)
class Known:
    """`horizon_at`: after it the provider can act on nothing that was sent. `key_ends_at`: the last moment of a
    repeat under the same key; None when there is none to come."""

    now: datetime
    horizon_at: datetime | None = None
    key_ends_at: datetime | None = None
    shown: bool = False  # the provider has shown a refund of it, or one like it


_ENDS: dict[str, tuple[str, str | Promise]] = {
    OperationState.SUCCEEDED: ("done", gettext_lazy("The provider has confirmed this refund.")),
    OperationState.FAILED: ("crossed", gettext_lazy("The provider refused it; no money moved.")),
    OperationState.NOT_EXECUTED: (
        "crossed", gettext_lazy("It is proved or declared that the provider did not do it.")),
    OperationState.RETURNED: (
        "crossed", gettext_lazy("The provider did it, and the money came back afterwards.")),
    OperationState.PENDING: ("", gettext_lazy("The provider has accepted it, and the money has not landed yet.")),
    OperationState.PREPARED: ("", gettext_lazy("It is prepared, and nothing has been sent yet.")),
    OperationState.SUBMITTING: ("", gettext_lazy("It has been handed over for sending.")),
}


def of_operation(operation: Operation, task: Task, known: Known) -> tuple[str, list[str]]:
    """The tone, and the sentences."""
    if operation.state in _ENDS:
        tone, sentence = _ENDS[operation.state]
        return tone, [str(sentence), *_wish(operation, task)]
    first = "" if known.shown else _("It is not known whether the money moved.")
    return "doubt", [*([first] if first else []), *_doubt(operation, task, known)]


def of_case(class_name: str) -> str:
    """The class's own sentence, as one begins it."""
    said = str(story.CASES.get(class_name, class_name))
    return said[:1].upper() + said[1:]


def of_refund(refund: sides.Refund) -> str:
    """A refund that the provider has shown."""
    said = {"amount": money_words(refund.amount_minor, refund.currency), "ref": printable(refund.ref),
            "status": sides.status(refund.status)}
    return _("The provider shows %(amount)s as its refund %(ref)s: %(status)s.") % said


def _doubt(operation: Operation, task: Task, known: Known) -> Iterable[str]:
    if known.shown:
        yield from _wish(operation, task)
        return
    yield _("%(absence)s Silence and absence prove nothing alone.") % {"absence": _absence(operation.absents)}
    if known.horizon_at is not None:
        yield _horizon(known.horizon_at, task, known.now)
    if known.key_ends_at is not None and known.key_ends_at > known.now and not task.cancel_wished_at:
        yield format_html(
            _("Until {} the same request may be repeated automatically under its one key, which can count only"
              " once."), moments.as_moment(known.key_ends_at))
    yield from _wish(operation, task)


def _absence(absents: int) -> str:
    if not absents:
        return _("The provider has not shown yet what happened.")
    return ngettext(
        "%(n)s complete look shows no such refund.", "%(n)s complete looks show no such refund.", absents
    ) % {"n": absents}


def _horizon(at: datetime, task: Task, now: datetime) -> str:
    when = moments.as_moment(at)
    if at <= now and task.cancel_wished_at:
        return format_html(
            _("Since {} the provider can no longer act on what was sent. One more complete look without it cancels the"
              " refund by itself."), when)
    if at <= now:
        return format_html(
            _("Since {} the provider can no longer act on what was sent. On a fresh complete look two people may"
              " declare it not executed."), when)
    if task.cancel_wished_at:
        return format_html(
            _("Until {} the provider may still act on what was sent. A complete look without it after that cancels the"
              " refund by itself."), when)
    return format_html(
        _("Until {} the provider may still act on what was sent. After that two people may declare it not executed."),
        when)


def _wish(operation: Operation, task: Task) -> Iterable[str]:
    if task.cancel_wished_at and operation.state in UNRESOLVED:
        yield format_html(_("Cancelling was wished for at {}."), moments.as_moment(task.cancel_wished_at))
    elif task.cancel_wished_at and operation.state == OperationState.SUCCEEDED:
        yield _("Cancelling was wished for, and came too late.")
