"""Carries a decision out: in the task's own transition where one is concerned, else in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from django.db import transaction

from runtime_app import access, rows
from runtime_app.bell import ring_after_commit
from runtime_app.chronicle import Say
from runtime_app.desk import outcomes
from runtime_app.desk.decision import Decision
from runtime_app.desk.reading import read
from runtime_app.desk.seen import Seen, facts, objection
from runtime_app.desk.situation import Situation
from runtime_app.errors import Conflict, FieldErrors
from runtime_app.ledger.operations import wake_unblocked
from runtime_app.models import Case, User
from runtime_app.reconciliation.classes import BY_PROOF, graver
from runtime_app.states import Status
from runtime_app.texts import check_text
from runtime_app.transitions import Applied, Guard, Part, Refused, Transition, apply_one

_TRIES = 5  # a task may move between reading and writing without anything about the case being another


@dataclass(frozen=True, slots=True)
class Plan:
    """`transition` None: no task is concerned. `rings`: there is work for a worker afterwards."""

    decision: Decision
    transition: Transition | None = None
    rings: bool = False


def do(person: User, case_id: object, action: str, saw: Seen, make: Callable[[Situation], Plan]) -> Case:
    """Do what `make` plans, unless something stands against it; then nothing was recorded, and the error says what."""
    for _ in range(_TRIES):
        access.forget(person)
        s = read(person, case_id)
        if (error := objection(s, person, action, saw)) is not None:
            raise error
        plan = make(s)
        if _written(person, s, plan):
            _afterwards(s, plan)
            return read(person, case_id).case
    raise Conflict("The case is being worked on at this very moment; nothing was recorded.", **facts(s))


def _written(person: User, s: Situation, plan: Plan) -> bool:
    if plan.transition is None or s.task is None:
        with transaction.atomic(durable=True):
            if holds := plan.decision.holds():
                plan.decision.record(s.case.tenant_id, rows.run("SELECT runtime_now()")[0][0])
        return holds
    parts: tuple[Part, ...] = (*plan.transition.parts, plan.decision)
    guard = Guard(s.task.id, s.task.revision, Status(s.task.status))
    result = apply_one(guard, replace(plan.transition, parts=parts), actor=access.actor(person))
    if isinstance(result, Refused) and result.refusal.code == "sender_alive":
        raise Conflict(
            "A worker may be at the provider with this very request; nothing was recorded. Try again in a moment.",
            **facts(s),
        )
    return isinstance(result, Applied)


def _afterwards(s: Situation, plan: Plan) -> None:
    unblocks = bool(plan.decision.close_as) and s.case.blocks != "nothing"
    if unblocks:
        wake_unblocked()  # the clock finds them too, a little later
    if unblocks or plan.rings:
        ring_after_commit()


def decision(
    s: Situation, person: User, action: str, saw: Seen, kind: str, data: dict[str, Any], *, close_as: str = "",
    columns: dict[str, Any] | None = None,
) -> Decision:
    return Decision(
        person=person, case_id=s.case.id, action=action, saw=saw, kind=kind, data=data, close_as=close_as,
        evidence_sha256=s.evidence_sha256, columns=columns or {},
    )


def told(s: Situation, type: str, what: str, why: str) -> Say:
    """An event of the task: `what` happened to the case, and why in words that people read."""
    return Say(type, {"case": str(s.case.id), "class": s.case.class_name, "what": what, "why": why[:700]})


def closing(s: Situation, outcome: str, reason: str) -> Transition | None:
    """The transition of the case's task that says that it is closed; None when it has no task."""
    if s.task is None:
        return None
    why = f"{outcomes.says(s.case.class_name, outcome)} {reason}".strip()
    return Transition(
        events=(told(s, "case.closed", outcome, why),), columns={"attention": mark(s)}, keep_lease=True, starts=None
    )


def mark(s: Situation, *, proved: bool = False) -> str | None:
    """The mark that the task wears without this case: the gravest of the others, None when there is no other. `proved`:
    what was open only for want of a proof closes as well."""
    kept = [s.recorded] if s.recorded else []
    names = kept + [c.class_name for c in s.others if not (proved and c.class_name in BY_PROOF)]
    return reduce(graver, names) if names else None


def reason_of(value: object, field: str = "reason") -> str:
    """Why, in the person's own words; never empty."""
    text = check_text(value, field, most=500).strip()
    if not text:
        raise FieldErrors({field: "Say why; others read this."})
    return text


def word_of(value: object, field: str, words: Any) -> str:
    if not isinstance(value, str) or value not in words:
        raise FieldErrors({field: f"Choose one of: {', '.join(words)}." if words else "There is nothing to choose."})
    return value
