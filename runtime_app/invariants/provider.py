"""Our operations held against the provider's own ledger: the money that really moved."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime_app import rows
from runtime_app.invariants.types import Violation, excused

Row = Mapping[str, Any]

AT_PROVIDER = {
    "one_effect_at_most": "The provider moved money at most once for an operation, or people know of it.",
    "completed_is_at_the_provider": "What a completed task's operation moved is at the provider, as it was asked for.",
    "nothing_moved_elsewhere": "The provider moved nothing for an operation that failed, was not executed or not sent.",
    "effects_are_ours": "Every refund that names an operation of ours is of one that we have.",
    "sends_are_ours": "The provider was sent no more than the calls written down, under one key, with the same bytes.",
}


@dataclass(frozen=True, slots=True)
class _Operation:
    id: str
    state: str
    amount_minor: int
    currency: str
    payment_ref: str
    provider_ref: str | None
    idempotency_key: str
    request_sha256: str
    known_to_people: bool
    status: str
    calls: int


def check(ledger: Sequence[Row], requests: Sequence[Row]) -> Iterator[Violation]:
    """`ledger` are the refunds whose money moved or is on its way, `requests` everything the provider was sent."""
    ours = {o.id: o for o in map(_typed, rows.run(
        "SELECT o.id, o.state, o.amount_minor, o.currency, o.payment_ref, o.provider_ref, o.idempotency_key,"
        f" o.request_sha256, {excused('t', 'o')}, t.status, (SELECT count(*) FROM runtime_app_call c"
        " WHERE c.operation_id = o.id AND c.kind IN ('submit', 'resend'))"
        " FROM runtime_app_operation o JOIN runtime_app_task t ON t.id = o.task_id"
    ))}
    moved: dict[str, list[Row]] = defaultdict(list)
    for refund in ledger:
        if refund["operation_id"] is not None:
            moved[refund["operation_id"]].append(refund)
    for id in sorted(moved.keys() - ours.keys()):
        yield Violation("effects_are_ours", id, f"{len(moved[id])} refunds of an operation that we do not have")
    for operation in ours.values():
        yield from _effects(operation, moved.get(operation.id, []))
    yield from _sends(ours, requests)


def _typed(row: rows.Row) -> _Operation:
    return _Operation(str(row[0]), *row[1:])


def _effects(operation: _Operation, moved: Sequence[Row]) -> Iterator[Violation]:
    if operation.known_to_people:
        return
    if len(moved) > 1:
        names = ", ".join(refund["id"] for refund in moved)
        yield Violation("one_effect_at_most", operation.id, f"{len(moved)} refunds: {names}")
    if operation.state == "succeeded":
        asked = (operation.amount_minor, operation.currency, operation.payment_ref, operation.provider_ref)
        done = [(r["amount_minor"], r["currency"], r["payment_ref"], r["id"]) for r in moved]
        if asked not in done:
            yield Violation("completed_is_at_the_provider", operation.id, f"asked for {asked}, the provider has {done}")
    quiet = operation.state in {"prepared", "failed", "not_executed"} or operation.status in {
        "cancelled", "rejected", "failed"
    }
    if quiet and moved:
        told = f"task {operation.status}, operation {operation.state}, yet refund {moved[0]['id']}"
        yield Violation("nothing_moved_elsewhere", operation.id, told)


def _sends(ours: Mapping[str, _Operation], requests: Sequence[Row]) -> Iterator[Violation]:
    sent: Counter[str] = Counter()
    for request in requests:
        operation = ours.get(request["operation_id"] or "")
        if operation is None or (request["method"], request["path"]) != ("POST", "/v1/refunds"):
            continue
        sent[operation.id] += 1
        if request["idempotency_key"] != operation.idempotency_key:
            yield Violation("sends_are_ours", operation.id, f"sent under the key {request['idempotency_key']}")
        if request["body_sha256"] != operation.request_sha256:
            yield Violation("sends_are_ours", operation.id, f"request {request['id']} had other bytes")
    for id, times in sent.items():
        if times > ours[id].calls:
            yield Violation("sends_are_ours", id, f"sent {times} times by {ours[id].calls} calls")
