"""What people do in a drill, one after another, for a nursery's children. A refusal is an answer like any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from approvals import decisions
from approvals.models import Approval
from runtime_app import tasks
from runtime_app.desk import actions, reading, verbs
from runtime_app.errors import RuntimeAppError
from runtime_app.models import Case, Task, Tenant, User
from runtime_app.tasks import Request

_CANCELLABLE = ("ready", "queued", "waiting_input")
# What an operator does about a case, in this order of liking. What is not allowed now may be after a fresh look.
_VERBS = ("record_as_found", "declare_not_executed", "acknowledge", "close", "query_now")


def act(*, wanted: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Do all of these in their order; the keys that were accepted, and how often each refusal came."""
    accepted, refused = [], Counter[str]()
    for each in wanted:
        try:
            _ACTS[each["act"]](each)
        except RuntimeAppError as error:
            refused[f"{each['act']}: {error.code}"] += 1
        else:
            accepted += [each["key"]] if each["act"] == "ask" else []
    return {"accepted": accepted, "refused": [f"{many} {what}" for what, many in refused.items()]}


def _ask(each: Mapping[str, Any]) -> None:
    request = Request(
        "refund", each["order"], amount_minor=each["amount"], currency=each["currency"], payment_ref=each["payment"]
    )
    tasks.create(_rita(), Tenant.objects.get(slug=each["tenant"]), request, request_key=each["key"])


def _cancel(each: Mapping[str, Any]) -> None:
    tasks.cancel(_rita(), Task.objects.get(request_key=each["key"]).id, reason="the customer kept it")


def _amend(each: Mapping[str, Any]) -> None:
    task = Task.objects.get(request_key=each["key"])
    tasks.amend(_rita(), task.id, revision=task.revision, amount_minor=each["amount"], reason=None)


def _decide(each: Mapping[str, Any]) -> None:
    """Every open approval of this tenant, or as many as `most`, by somebody."""
    asked = Approval.objects.filter(state="open", task__tenant__slug=each["tenant"]).select_related("task")
    person = User.objects.get(username=each["by"])
    for one in asked.order_by("id")[: each["most"]]:
        try:
            decisions.decide(
                person, one.id, verdict=each["verdict"], reason="As it is.", fingerprint=one.fingerprint,
                revision=one.task.revision, nonce=uuid4().hex,
            )
        except RuntimeAppError:
            continue  # it has moved on, or somebody has decided it at the same moment


_ACTS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "ask": _ask, "cancel": _cancel, "amend": _amend, "decide": _decide,
}


def _rita() -> User:
    return User.objects.get(username="rita")


def operate() -> dict[str, int]:
    """Olga and Otto go through every open case, and cancel what was parked because it cannot be sent; what they did."""
    done: Counter[str] = Counter()
    people = [User.objects.get(username=name) for name in ("olga", "otto")]
    for case in Case.objects.filter(state="open").order_by("opened_at", "id"):
        for person in people:
            done[_about(case, person)] += 1
    for task in Task.objects.filter(parked_reason="dead_letter", status__in=_CANCELLABLE):
        tasks.cancel(_rita(), task.id, reason="it cannot be sent")
        done["cancelled what cannot be sent"] += 1
    return {what: many for what, many in done.items() if what}


def _about(case: Case, person: User) -> str:
    """The first thing that this person may do about it; an empty text when there is nothing."""
    shown = reading.read(person, case.id)
    offers = {offer.name: offer for offer in actions.offers(shown, person)}
    for name in _VERBS:
        offer = offers[name]
        if not offer.allowed or not shown.open:
            continue
        said: dict[str, Any] = {} if name == "query_now" else {"reason": "Looked at it."}
        if offer.choices:
            said["outcome" if name == "close" else "code"] = next(iter(offer.choices))
        try:
            getattr(verbs, name)(
                person, case.id, revision=shown.case.revision, seen_sha256=shown.evidence_sha256, **said
            )
        except RuntimeAppError as error:
            return f"{name}: {error.code}"
        return name
    return ""
