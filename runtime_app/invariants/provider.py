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
SETTLED = {
    "payment_total_is_named": "All that the provider moved on a payment has a name here, or a case was opened about it,"
    " or it is in doubt or about to be looked at. Asked for when nothing is moving.",
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


# The sandbox is one provider; what is at another one is not in its ledger.
_ELSEWHERE = (
    "EXISTS (SELECT 1 FROM runtime_app_account a WHERE a.tenant_id = {0}.tenant_id AND a.ref = {0}.account"
    " AND a.provider <> 'stripe')"
)


def check(ledger: Sequence[Row], requests: Sequence[Row]) -> Iterator[Violation]:
    """`ledger` are the refunds whose money moved or is on its way, `requests` everything the provider was sent."""
    ours = {o.id: o for o in map(_typed, rows.run(
        "SELECT o.id, o.state, o.amount_minor, o.currency, o.payment_ref, o.provider_ref, o.idempotency_key,"
        f" o.request_sha256, {excused('t', 'o')}, t.status, (SELECT count(*) FROM runtime_app_call c"
        " WHERE c.operation_id = o.id AND c.kind IN ('submit', 'resend'))"
        f" FROM runtime_app_operation o JOIN runtime_app_task t ON t.id = o.task_id WHERE NOT {_ELSEWHERE.format('o')}"
    ))}
    moved = _moved(ours, ledger)
    for id in sorted(moved.keys() - ours.keys()):
        yield Violation("effects_are_ours", id, f"{len(moved[id])} refunds of an operation that we do not have")
    for operation in ours.values():
        yield from _effects(operation, moved.get(operation.id, []))
    yield from _sends(ours, requests)


def _moved(ours: Mapping[str, _Operation], ledger: Sequence[Row]) -> dict[str, list[Row]]:
    """The refunds by the operation that they name; one without a name is whose key it was made under, or whose it has
    been proved to be."""
    by_key = {o.idempotency_key: o.id for o in ours.values()}
    by_ref = {o.provider_ref: o.id for o in ours.values() if o.provider_ref is not None}
    moved: dict[str, list[Row]] = defaultdict(list)
    for refund in ledger:
        owner = refund["operation_id"] or by_key.get(refund["idempotency_key"]) or by_ref.get(refund["id"])
        if owner is not None:
            moved[owner].append(refund)
    return moved


_NAMED = f"""
SELECT p.ref, coalesce(b.minor, 0),
    EXISTS (SELECT 1 FROM runtime_app_case c LEFT JOIN runtime_app_operation o ON o.id = c.operation_id
        WHERE p.ref IN (c.payment_ref, o.payment_ref)
        OR c.details -> 'refunds' @> jsonb_build_array(jsonb_build_object('payment_ref', p.ref)))
    OR EXISTS (SELECT 1 FROM runtime_app_operation o WHERE o.payment_ref = p.ref
        AND (o.state IN ('submitting', 'unknown', 'pending') OR o.next_check_at IS NOT NULL))
    OR EXISTS (SELECT 1 FROM runtime_app_paymentlook l WHERE l.payment_ref = p.ref AND l.due_at IS NOT NULL)
    OR EXISTS (SELECT 1 FROM runtime_app_notice n WHERE n.payment_ref = p.ref AND n.due_at IS NOT NULL)
FROM (SELECT unnest(%s::text[]) AS ref UNION SELECT payment_ref FROM runtime_app_balance x
    WHERE refunded_minor + external_provider_minor > 0 AND NOT {_ELSEWHERE.format('x')}) AS p
LEFT JOIN (SELECT payment_ref, sum(refunded_minor + external_provider_minor)::bigint AS minor FROM runtime_app_balance
    GROUP BY 1) AS b ON b.payment_ref = p.ref
"""


def totals(ledger: Sequence[Row]) -> Iterator[Violation]:
    """I12, for a moment at which nothing moves: the provider's total of each payment against what we can name of it."""
    moved: Counter[str] = Counter()
    for refund in ledger:
        moved[refund["payment_ref"]] += refund["amount_minor"]
    for ref, named, looked_at in rows.run(_NAMED, [sorted(moved)]):
        if moved[ref] != named and not looked_at:
            yield Violation("payment_total_is_named", ref, f"the provider moved {moved[ref]}, we can name {named}")


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
