"""Approvals that were given, and which of their votes count with what people hold at this moment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from approvals import standing
from approvals.counting import Vote, valid
from approvals.rules import Rules
from approvals.rules_json import frozen
from runtime_app import rows


@dataclass(frozen=True, slots=True)
class Given:
    """An approval that was given. `excluded` asked for what it is about, or changed it."""

    id: UUID
    tenant_id: UUID
    fingerprint: str
    rules: Rules
    escalated: bool
    amount_minor: int
    currency: str
    votes: tuple[Vote, ...]
    names: Mapping[int, str]  # usernames of the voters
    excluded: frozenset[int]


def parties(requester_id: int | None, state: Mapping[str, Any]) -> frozenset[int]:
    """Who asked for a task or changed what it asks for, by user id; none of them decides it."""
    people = frozenset(state.get("shaped_by", ()))
    return people if requester_id is None else people | {requester_id}


def of_tasks(tasks: Mapping[UUID, frozenset[int]]) -> dict[UUID, Given]:
    """By task id the approval that was given and not superseded; `tasks` says who is excluded from each."""
    found = rows.run(
        "SELECT a.task_id, a.id, a.tenant_id, a.fingerprint, a.rules, a.quorum, a.escalated_at IS NOT NULL,"
        " (a.facts ->> 'amount_minor')::bigint, a.facts ->> 'currency',"
        " array_agg(d.person_id ORDER BY d.decided_at, d.id), array_agg(d.review ORDER BY d.decided_at, d.id),"
        " array_agg(d.for_person_id ORDER BY d.decided_at, d.id), array_agg(u.username ORDER BY d.decided_at, d.id)"
        " FROM approvals_approval a JOIN approvals_decision d ON d.approval_id = a.id AND d.verdict = 'approve'"
        " AND d.withdrawn_at IS NULL JOIN runtime_app_user u ON u.id = d.person_id"
        " WHERE a.task_id = ANY(%s) AND a.state = 'approved' GROUP BY a.id",
        [list(tasks)],
    )
    return {
        task: Given(
            id, tenant, mark, frozen(json.loads(rules), quorum), escalated, amount, currency,
            tuple(Vote(*vote) for vote in zip(people, reviews, places, strict=True)),
            dict(zip(people, names, strict=True)), tasks[task],
        )
        for task, id, tenant, mark, rules, quorum, escalated, amount, currency, people, reviews, places, names in found
    }


def count(given: Iterable[Given]) -> dict[UUID, tuple[Vote, ...]]:
    """By approval id the votes that count now, with rights, roles and teams read at this moment."""
    asked = list(given)
    people = {id for one in asked for vote in one.votes for id in (vote.person_id, vote.place)}
    held = standing.of_people({one.tenant_id for one in asked}, people)
    return {
        one.id: valid(
            one.rules, one.votes, held, tenant_id=one.tenant_id, amount_minor=one.amount_minor, currency=one.currency,
            excluded=one.excluded, escalated=one.escalated,
        )
        for one in asked
    }
