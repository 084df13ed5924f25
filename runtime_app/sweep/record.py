"""Recording what a list has shown: each find as a look at its operation, by whoever has the task in hand."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError

from runtime_app import leases
from runtime_app.adapters.payments.types import Observation, ProviderRefund
from runtime_app.ids import new_id
from runtime_app.leases import Claimed
from runtime_app.ledger.calls import BeginCall
from runtime_app.ledger.steps import AddStep
from runtime_app.states import UNRESOLVED, Status
from runtime_app.transitions import Applied, Result, Transition, Wanted, apply
from runtime_app.workflows.refund.facts import RefundFacts, load
from runtime_app.workflows.refund.reconcile import found_in_list
from runtime_app.workflows.types import Ports

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """All refunds of one operation that an account's list shows, and the page on which the first of them was."""

    operation_id: UUID
    task_id: UUID
    refunds: tuple[ProviderRefund, ...]
    page: Observation

    @property
    def evidence(self) -> Observation:
        """The page's digest, and of its body what is about this operation."""
        body, refs = self.page.body, {refund.ref for refund in self.refunds}
        return replace(self.page, body=_only(body, refs))


def _only(body: Any, refs: set[str]) -> Any:
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list):
        return body
    return {**body, "data": [one for one in data if isinstance(one, dict) and one.get("id") in refs]}


def record(seen: Sequence[Seen], ports: Ports, actor: str) -> int:
    """Record these, all that nobody else has in hand; returns how many were. What wants more than to be written down
    (a cancel to be sent, a person's question) is left to a look of its own, which is due at once."""
    by_task = {one.task_id: one for one in seen}
    owner = f"{actor}:sweep"[:120]
    tasks = leases.claim_these(list(by_task), Status.RECONCILING, worker=owner, seconds=ports.timing.lease)
    facts = load(tasks)
    ports = replace(ports, sender_holds=lambda operation_id: False)  # what was found is there whoever else may send
    decided = {task.id: _decided(task, facts[task.id], by_task[task.id], ports) for task in tasks}
    wanted = [Wanted(task.guard, found, actor) for task in tasks if (found := decided[task.id]) is not None]
    applied = {result.task_id for result in _apply(wanted) if isinstance(result, Applied)}
    leases.release([(task.id, task.fence) for task in tasks if task.id not in applied], worker=owner)
    return len(applied)


def _decided(task: Claimed, facts: RefundFacts, seen: Seen, ports: Ports) -> Transition | None:
    operation = facts.operation
    if operation is None or operation.id != seen.operation_id or operation.state not in UNRESOLVED:
        return None
    if any(case.asked for case in facts.cases):
        return None
    call = BeginCall(id=new_id(), operation_id=operation.id, kind="query")
    try:
        found = found_in_list(facts, ports, call, seen.refunds, seen.evidence)
    except Exception:  # one that raises is looked at by itself, where that is counted
        log.exception("what a list shows of task %s cannot be judged", task.id)
        return None
    if found.then is not None:
        return None
    return replace(found, parts=(*found.parts, AddStep("sweep", found.to or "stays", 0.0, task.fence)))


def _apply(wanted: Sequence[Wanted]) -> list[Result]:
    try:
        return apply(wanted)
    except (OperationalError, InterfaceError):
        raise
    except Exception:  # whatever one of them holds that cannot be written, the others are recorded
        log.exception("a batch of %d failed; one at a time", len(wanted))
        return [result for each in wanted for result in _apply_alone(each)]


def _apply_alone(each: Wanted) -> list[Result]:
    try:
        return apply([each])
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("what a list shows of task %s cannot be recorded", each.guard.task_id)
        return []
