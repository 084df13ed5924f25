"""Who was told of a task's approvals, as lines of its story: those who were told the same at once share one."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.functional import Promise
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals import telling
from approvals.telling import Shown
from runtime_app.console.timeline import Line
from runtime_app.models import Task

SENT: dict[str, str | Promise] = {
    "asked": gettext_lazy("%(who)s heard %(how)s that it is to be decided."),
    "reminder": gettext_lazy("%(who)s heard %(how)s that it is still to be decided."),
    "escalated": gettext_lazy("%(who)s heard %(how)s that it is to be decided before the deadline, which is near."),
    "handed_over": gettext_lazy("%(who)s heard %(how)s that it was handed over."),
    "input_asked": gettext_lazy("%(who)s heard %(how)s that an approver asks for more."),
    "decided": gettext_lazy("%(who)s heard %(how)s what was decided."),
    "superseded": gettext_lazy("%(who)s heard %(how)s that what was asked no longer counts."),
    "expired": gettext_lazy("%(who)s heard %(how)s that nobody decided in time."),
    "cancelled": gettext_lazy("%(who)s heard %(how)s that it was cancelled."),
}
NOT_SENT: dict[str, tuple[str, str | Promise]] = {
    "dropped": ("note", gettext_lazy("%(who)s did not have to hear of it %(how)s any more.")),
    "dead": ("crossed", gettext_lazy("%(who)s could not be reached %(how)s; it is not tried any more.")),
    "waiting": ("waiting", gettext_lazy("%(who)s could not be reached %(how)s yet; it is tried again by itself.")),
}
HOW: dict[str, str | Promise] = {"mail": gettext_lazy("by mail"), "webhook": gettext_lazy("through a webhook")}


def lines(task: Task) -> list[Line]:
    """In the order of time. What waits without trouble is no news yet."""
    together: dict[tuple[object, ...], list[Shown]] = {}
    for one in telling.of_task(task):
        if one.state != "waiting" or one.last_error:
            key = (one.what, one.how, one.state, one.last_error, one.told_of_at)
            together.setdefault(key, []).append(one)
    return sorted(map(_line, together.values()), key=lambda line: (line.at is not None, line.at))


def _line(same: Sequence[Shown]) -> Line:
    first = same[0]
    who = sorted(one.who if one.how == "mail" else _("The receiver %(host)s") % {"host": one.who} for one in same)
    shape, sentence = NOT_SENT.get(first.state, ("note", SENT[first.what]))
    at = first.told_of_at if first.state == "waiting" else max(one.at for one in same)
    said = {"who": get_text_list(who, _("and")), "how": str(HOW[first.how])}
    return Line(at=at, sentence=str(sentence) % said, shape=shape, why=first.last_error)
