"""Whose a line is: by the provider's reference, then by ours. A like amount is a suggestion and never a match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from runtime_app import rows
from runtime_app.models import Account, Operation, StatementLine
from runtime_app.states import OperationState

_NEAR = timedelta(days=3)
_SUGGESTIONS_MOST = 5
_UNSHOWN_MOST = 2000


@dataclass(frozen=True, slots=True)
class Named:
    """What a line names. `elsewhere`: an operation that is not of this account; another tenant's stays unnamed."""

    operation: Operation | None = None
    elsewhere: bool = False


def name(account: Account, lines: Sequence[StatementLine]) -> dict[UUID, Named]:
    """What each of these lines of the account names, by the line's id."""
    by_ref, by_id = _candidates(account, lines)
    foreign = _foreign(account, [u for line in lines if (u := _uuid(line.our_ref)) is not None and u not in by_id])
    named = {}
    for line in lines:
        ours = _uuid(line.our_ref)
        operation = by_ref.get(line.provider_ref) if line.provider_ref else None
        operation = operation or (by_id.get(ours) if ours is not None else None)
        away = operation is not None and operation.account != account.ref
        named[line.id] = Named(operation, elsewhere=away or (operation is None and ours in foreign))
    return named


def _candidates(
    account: Account, lines: Sequence[StatementLine]
) -> tuple[dict[str, Operation], dict[UUID, Operation]]:
    refs = sorted({line.provider_ref for line in lines if line.provider_ref})
    ids = sorted({u for line in lines if (u := _uuid(line.our_ref)) is not None}, key=str)
    found = Operation.objects.filter(tenant_id=account.tenant_id).select_related("task")
    by_ref = {str(o.provider_ref): o for o in found.filter(account=account.ref, provider_ref__in=refs)} if refs else {}
    return by_ref, {o.id: o for o in found.filter(id__in=ids)} if ids else {}


def _foreign(account: Account, ids: Sequence[UUID]) -> set[UUID]:
    """Which of these are operations of another tenant. No more than that is read of them."""
    if not ids:
        return set()
    found = rows.run(
        "SELECT id FROM runtime_app_operation WHERE id = ANY(%s) AND tenant_id <> %s", [list(ids), account.tenant_id]
    )
    return {row[0] for row in found}


def _uuid(text: str) -> UUID | None:
    """Our reference as it stands in our own rows; another way of writing it is not ours."""
    try:
        found = UUID(text) if len(text) == 36 else None
    except ValueError:
        return None
    return found if found is not None and str(found) == text else None


def same_payment(told: str, ours: str) -> str:
    """The payment that a line names, or nothing when it names it by another kind of reference than we do (a charge
    instead of its intent): two such references say nothing about each other."""
    kind, _, rest = ours.partition("_")
    other = told.partition("_")[0]
    return "" if told and rest and "_" in told and other != kind else told


@dataclass(frozen=True, slots=True)
class Together:
    """All lines of one operation: the place of each among those that go the same way, and what they add up to."""

    places: Mapping[UUID, int]
    total: int


def together(operations: Mapping[UUID, Operation]) -> dict[UUID, Together]:
    """By operation. The first line is the one that has been matched before, or that the provider named to us."""
    lines = StatementLine.objects.filter(operation_id__in=list(operations)).only(
        "id", "operation_id", "class_name", "provider_ref", "occurred_at", "ref", "amount_minor"
    )
    grouped: dict[UUID, list[StatementLine]] = defaultdict(list)
    for line in lines:
        if line.operation_id is not None:
            grouped[line.operation_id].append(line)
    return {id: _placed(operations[id], found) for id, found in grouped.items()}


def _placed(operation: Operation, lines: Iterable[StatementLine]) -> Together:
    def order(line: StatementLine) -> tuple[bool, bool, datetime, str]:
        matched = line.class_name in {"MATCHED", "FEE_OR_FX"}
        return (not matched, line.provider_ref != operation.provider_ref, line.occurred_at, line.ref)

    places: dict[UUID, int] = {}
    counts = {True: 0, False: 0}
    total = 0
    for line in sorted(lines, key=order):
        came_in = line.amount_minor > 0
        counts[came_in] += 1
        places[line.id] = counts[came_in]
        total += line.amount_minor
    return Together(places, total)


def unshown(account: Account, since: datetime, until: datetime) -> list[Operation]:
    """Operations that were handed over in this time and of which no line shows anything."""
    return list(
        Operation.objects.filter(
            tenant_id=account.tenant_id, account=account.ref, first_submit_at__range=(since - _NEAR, until + _NEAR),
            lines__isnull=True,
        ).exclude(state=OperationState.PREPARED).order_by("first_submit_at")[:_UNSHOWN_MOST]
    )


def suggest_operations(line: StatementLine, unshown: Iterable[Operation]) -> list[dict[str, object]]:
    """Those of this amount near this time, for a person to look at."""
    near = [o for o in unshown if (o.amount_minor, o.currency) == (abs(line.amount_minor), line.currency)
            and o.first_submit_at is not None and abs(o.first_submit_at - line.occurred_at) <= _NEAR]
    return [
        {"operation": str(o.id), "order_ref": o.order_ref, "payment_ref": o.payment_ref, "state": o.state,
         "amount_minor": o.amount_minor, "currency": o.currency} for o in near[:_SUGGESTIONS_MOST]
    ]


def suggest_lines(account: Account, operation: Operation) -> list[dict[str, object]]:
    """Lines of this amount near this time that are nobody's."""
    if operation.first_submit_at is None:
        return []
    around = (operation.first_submit_at - _NEAR, operation.first_submit_at + _NEAR)
    near = StatementLine.objects.filter(
        account=account, operation=None, occurred_at__range=around, currency=operation.currency,
        amount_minor=-operation.amount_minor,
    ).order_by("occurred_at")[:_SUGGESTIONS_MOST]
    return [{"ref": n.ref, "provider_ref": n.provider_ref, "payment_ref": n.payment_ref} for n in near]
