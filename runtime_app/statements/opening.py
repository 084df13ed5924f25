"""Opening a person's case for what a statement shows, once for each matter, whatever was decided about it before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from uuid import UUID

from django.db import transaction

from runtime_app import rows
from runtime_app.adapters.payments.types import Observation
from runtime_app.chronicle import Say
from runtime_app.ledger.calls import store_evidence
from runtime_app.ledger.cases import OpenCase
from runtime_app.models import Account, Operation, StatementDay, StatementLine
from runtime_app.points import point
from runtime_app.reconciliation.classes import CLASSES, graver
from runtime_app.statements import calendar
from runtime_app.statements.acts import task_now, told
from runtime_app.transitions import Applied, Guard, Locked, Refusal, Refused, Transition, apply_one

_LOST_MOST = 5
# These are one matter an operation, and may be opened by what the provider answers as well.
_OF_OPERATION = frozenset({"DUPLICATE_EXECUTION", "LATE_EXECUTION", "RETURNED", "STATUS_CONFLICT"})


@dataclass(frozen=True, slots=True)
class Matter:
    """What a case is about."""

    account: Account
    day: StatementDay
    case: OpenCase
    operation: Operation | None
    seen: Observation | None = None  # evidence of a line that is of no operation

    @property
    def dedup_key(self) -> str:
        return f"{self.case.class_name}:{self.case.matter or self.case.operation_id}"[:300]


def of_line(
    account: Account, day: StatementDay, line: StatementLine, operation: Operation | None, class_name: str,
    suggestions: list[dict[str, object]], seen: Observation,
) -> Matter:
    details: dict[str, Any] = {
        "statement_day": day.day.isoformat(), "line": told(line), "suggestions": suggestions,
        "refunds": [{"ref": line.provider_ref or line.ref, "payment_ref": line.payment_ref, "status": "booked",
                     "amount_minor": abs(line.amount_minor), "currency": line.currency}],
    }
    matter = "" if class_name in _OF_OPERATION and operation else _matter(account, line, class_name)
    payment = line.payment_ref or (operation.payment_ref if operation else "")
    case = OpenCase(
        class_name, account.ref, payment, operation.order_ref if operation else _order_of(account, payment),
        operation.id if operation else None, abs(line.amount_minor), line.currency, why=_why(class_name, day),
        details=details | _closed(day), matter=matter,
    )
    return Matter(account, day, case, operation, seen)


def of_operation(
    account: Account, day: StatementDay, operation: Operation, class_name: str, suggestions: list[dict[str, object]],
) -> Matter:
    details: dict[str, Any] = {"statement_day": day.day.isoformat(), "suggestions": suggestions} | _closed(day)
    case = OpenCase(
        class_name, account.ref, operation.payment_ref, operation.order_ref, operation.id, operation.amount_minor,
        operation.currency, why=_why(class_name, day), details=details,
    )
    return Matter(account, day, case, operation)


def _matter(account: Account, line: StatementLine, class_name: str) -> str:
    if class_name == "MISSING_HERE" and line.amount_minor < 0:  # as a look at the payment names the same refund
        return f"{account.ref}:{line.provider_ref or line.ref}"
    if class_name == "DISPUTED":
        return f"{account.ref}:{line.payment_ref or line.provider_ref or line.ref}"
    return f"{account.ref}:{line.ref}"


def _why(class_name: str, day: StatementDay) -> str:
    closed = f" It came after the day {day.day} was closed." if day.state == "closed" else ""
    return f"{CLASSES[class_name].says} Statement of {day.day}.{closed}"


def _closed(day: StatementDay) -> dict[str, Any]:
    return {"closed_day": day.day.isoformat()} if day.state == "closed" else {}


def _order_of(account: Account, payment_ref: str) -> str:
    found = rows.run(
        "SELECT order_ref FROM runtime_app_balance WHERE tenant_id = %s AND account = %s AND payment_ref = %s",
        [account.tenant_id, account.ref, payment_ref],
    )
    return str(found[0][0]) if found else ""


def ensure(matter: Matter, *, actor: str) -> UUID:
    """The case of this matter: the one there is, or was, else a new one."""
    known = _known(matter.account.tenant_id, matter.dedup_key)
    if known is not None:
        return known
    if matter.operation is not None and matter.operation.tenant_id == matter.account.tenant_id:
        return _with_task(matter, matter.operation.id, actor)
    return _alone(matter)


def _known(tenant_id: UUID, dedup_key: str) -> UUID | None:
    found = rows.run(
        "SELECT id FROM runtime_app_case WHERE tenant_id = %s AND dedup_key = %s ORDER BY opened_at DESC LIMIT 1",
        [tenant_id, dedup_key],
    )
    return found[0][0] if found else None


def _with_task(matter: Matter, operation_id: UUID, actor: str) -> UUID:
    """The task says so and wears the mark; it keeps its status, its lease and its end."""
    name = matter.case.class_name
    said = Say("case.opened", {"class": name, "why": matter.case.why})
    for _ in range(_LOST_MOST):
        now = task_now(operation_id)
        mark = graver(now.attention, name) if now.attention in CLASSES else name
        transition = Transition(
            events=(said,), columns={"attention": mark}, parts=(Unknown(matter.dedup_key), matter.case),
            keep_lease=True, starts=None,
        )
        result = apply_one(Guard(now.guard.task_id, now.guard.revision, now.guard.status), transition, actor=actor)
        if isinstance(result, Applied | Refused) and (id := _known(matter.account.tenant_id, matter.dedup_key)):
            return id
    return _alone(matter)  # a task that is never still does not keep a person from being told


def _alone(matter: Matter) -> UUID:
    tenant_id = matter.account.tenant_id
    with transaction.atomic(durable=True):
        now = calendar.now()
        opened = matter.case.store(tenant_id=tenant_id, task_id=None, now=now)
        if opened is not None and matter.seen is not None:
            store_evidence(
                tenant_id=tenant_id, now=now, kind="statement_line", finding="booked", seen=matter.seen,
                case_id=opened,
            )
        point("statements.case.commit")
    point("statements.case.committed")
    id = opened or _known(tenant_id, matter.dedup_key)
    assert id is not None  # it was stored, or another of the same matter stood in its way
    return id


@dataclass(frozen=True, slots=True)
class Unknown:
    """Refuses as `known` when there is a case of this matter, open or closed."""

    dedup_key: str

    rank: ClassVar[int] = 6
    survives: ClassVar[bool] = False

    @classmethod
    def admit(cls, wanted: Sequence[tuple[Locked, Self]]) -> dict[UUID, Refusal]:
        return {row.id: Refusal("known") for row, part in wanted if _known(row.tenant_id, part.dedup_key) is not None}

    @classmethod
    def write(cls, wanted: Sequence[tuple[Locked, Self]]) -> None:
        return None
