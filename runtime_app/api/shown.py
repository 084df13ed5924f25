"""Rows as the API tells them: only what a caller of that tenant may know, in a shape that does not change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from approvals import places
from approvals.models import Approval, Decision
from runtime_app.models import Attempt, Call, Event, Operation, Step, Task
from runtime_app.states import Status

ROOT = "/api/v1"
_PARTS = ("events", "stream", "operations", "attempts", "approvals")
_NOTHING = hashlib.sha256(b"").digest()


def task(row: Task) -> dict[str, Any]:
    """The row must come with its requester and session, or each costs a query."""
    here = f"{ROOT}/tasks/{row.id}"
    return {
        "id": row.id, "status": row.status, "revision": row.revision, "workflow": row.workflow,
        "workflow_version": row.workflow_version, "request_key": row.request_key, "order_ref": row.order_ref,
        "payment_ref": row.payment_ref, "amount_minor": row.amount_minor, "currency": row.currency,
        "reason": row.reason, "on_behalf_of": row.requester.username if row.requester else None,
        "session": row.session.ref if row.session else None, "metadata": row.metadata,
        "waiting_for": row.state.get("waiting_for", {}) if row.status == Status.WAITING_INPUT else {},
        "parked_reason": row.parked_reason, "attention": row.attention, "cancel_wished_at": row.cancel_wished_at,
        "created_at": row.created_at, "status_since": row.status_since,
        "links": {
            "self": here, **{part: f"{here}/{part}" for part in _PARTS},
            "page": f"/tasks/{row.id}/",
        },
    }


def event(row: Event, payload: dict[str, Any] | None) -> dict[str, Any]:
    """An event that never said more than its type has empty data; one whose payload retention removed has null."""
    data = payload if payload is not None or bytes(row.payload_sha256) != _NOTHING else {}
    return {"task_id": row.task_id, "seq": row.seq, "type": row.type, "actor": row.actor, "at": row.at, "data": data}


def operation(row: Operation, calls: Iterable[Call]) -> dict[str, Any]:
    return {
        "id": row.id, "effect": row.effect, "ordinal": row.ordinal, "state": row.state, "order_ref": row.order_ref,
        "payment_ref": row.payment_ref, "amount_minor": row.amount_minor, "currency": row.currency,
        "provider_ref": row.provider_ref, "first_submit_at": row.first_submit_at,
        "last_possible_send_at": row.last_possible_send_at, "next_check_at": row.next_check_at, "checks": row.checks,
        "resends": row.resends, "case": row.case_class, "created_at": row.created_at,
        "calls": [_call(call) for call in calls],
    }


def _call(row: Call) -> dict[str, Any]:
    return {
        "kind": row.kind, "started_at": row.started_at, "ended_at": row.ended_at, "outcome": row.outcome,
        "finding": row.finding,
    }


def attempt(row: Attempt, steps: Iterable[Step]) -> dict[str, Any]:
    return {
        "fence": row.fence, "workflow_version": row.workflow_version, "started_at": row.started_at,
        "steps": [
            {"name": s.name, "outcome": s.outcome, "active_ms": s.active_ms, "ended_at": s.ended_at} for s in steps
        ],
    }


def approval(row: Approval, decisions: Iterable[Decision]) -> dict[str, Any]:
    return {
        "id": row.id, "state": row.state, "fingerprint": row.fingerprint, "facts": row.facts,
        "policy_version": row.policy_version, "quorum": row.quorum, "asked_at": row.asked_at,
        "reviews": [{"name": each.name, "quorum": each.quorum} for each in places.rules_of(row).reviews],
        "deadline_at": row.deadline_at, "closed_at": row.closed_at, "closed_why": row.closed_why,
        "decisions": [
            {
                "person": d.person.username, "for_person": d.for_person.username if d.for_person else None,
                "review": d.review, "verdict": d.verdict, "reason": d.reason, "decided_at": d.decided_at,
                "withdrawn_at": d.withdrawn_at,
            }
            for d in decisions
        ],
        "page": f"/approvals/{row.id}/",
    }
