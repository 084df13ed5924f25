"""Cells of the fault matrix: one refund each that meets one fault, and what became of it."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.reliability.fault_table import ROWS, Arm, End, Row
from tests.reliability.stage import Stage

AMOUNT, CAPTURED, OTHER = 3000, 10000, 9000
QUIET, TOLD = "calm", "chatty"  # tenants that many cells share; the provider's notices go to the second only


@dataclass(frozen=True, slots=True)
class Cell:
    """`name` is the order and the request's key."""

    row: Row
    wished: bool
    name: str

    def __str__(self) -> str:
        return f"{self.row.fault} {self.row.what}, {'cancelled' if self.wished else 'left alone'}"

    @property
    def payment(self) -> str:
        return f"pi_{self.name}"

    @property
    def other(self) -> str:
        return f"pi_{self.name}-other"

    @property
    def tenant(self) -> str:
        return f"of-{self.name}" if self.row.alone else TOLD if self.row.told else QUIET

    @property
    def expected(self) -> End:
        return self.row.ends[self.wished]

    def own(self, text: Any) -> Any:
        """The value of an arm, with this cell's names in it."""
        if not isinstance(text, str):
            return text
        return text.format(payment=self.payment, other=self.other, tenant=self.tenant)


def cells() -> tuple[Cell, ...]:
    """Two a row; only those of `COUNTERSIGN_FAULTS` (as F4,F31), when it says so."""
    wanted = os.environ.get("COUNTERSIGN_FAULTS", "").split(",")
    return tuple(
        Cell(row, wished, f"{row.fault.lower()}-{n}-{'cancelled' if wished else 'alone'}")
        for n, row in enumerate(ROWS) if wanted == [""] or row.fault in wanted for wished in (False, True)
    )


def order(stage: Stage, cell: Cell) -> None:
    """A fresh order: the payment that is to be refunded, and another one that a fault may reach instead."""
    stage.room.sandbox.order(
        cell.name, tenant=cell.tenant, payments={cell.payment: CAPTURED} | (
            {cell.other: OTHER} if any("{other}" in arm.how.values() for arm in cell.row.arms) else {}),
    )


def arm(stage: Stage, cell: Cell, arms: Sequence[Arm] | None = None) -> None:
    for each in cell.row.arms if arms is None else arms:
        how: Mapping[str, Any] = {name: cell.own(value) for name, value in each.how.items()}
        stage.room.sandbox.fault(each.fault, match={n: cell.own(v) for n, v in each.match.items()}, **how)


def asked(cell: Cell) -> dict[str, Any]:
    return {"tenant": cell.tenant, "order": cell.name, "amount": AMOUNT, "key": cell.name, "payment": cell.payment}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a cell shows: the task, all cases that were opened about it or its payment, and what was sent and made."""

    end: End
    parked: str
    sends: int
    looks: int
    executions: int
    too_late: bool

    def wrong(self, cell: Cell) -> list[str]:
        wrong = []
        if self.end != cell.expected:
            wrong.append(f"ended {self.end}, not {cell.expected}")
        if self.executions > cell.row.executions:
            wrong.append(f"executed {self.executions} times")
        if cell.row.sends is not None and not cell.wished and self.sends != cell.row.sends:
            wrong.append(f"sent {self.sends} times, not {cell.row.sends}")
        return wrong


_TOLD = """
SELECT t.request_key, t.status, coalesce(t.parked_reason, ''), coalesce(o.looks, 0), o.id::text,
    EXISTS (SELECT 1 FROM runtime_app_event e WHERE e.task_id = t.id AND e.type = 'cancel.too_late'),
    ARRAY(SELECT DISTINCT c.class_name FROM runtime_app_case c WHERE c.tenant_id = t.tenant_id
        AND (c.task_id = t.id OR c.operation_id = o.id OR n.slug = 'of-' || t.request_key
            OR c.payment_ref IN ('pi_' || t.request_key, 'pi_' || t.request_key || '-other'))
        -- A statement that shows other tenants' things also shows what was refunded outside of us, or disputed, there.
        AND NOT (c.class_name IN ('MISSING_HERE', 'DISPUTED') AND EXISTS (SELECT 1 FROM runtime_app_task other
            WHERE c.payment_ref = 'pi_' || other.request_key AND other.tenant_id <> t.tenant_id)))
FROM runtime_app_task t JOIN runtime_app_tenant n ON n.id = t.tenant_id
LEFT JOIN LATERAL (SELECT o.id, (SELECT count(*) FROM runtime_app_call c WHERE c.operation_id = o.id
    AND c.kind = 'query') AS looks FROM runtime_app_operation o WHERE o.task_id = t.id) o ON true
"""


def look(stage: Stage) -> dict[str, Seen]:
    """How every cell stands, by its name."""
    sandbox = stage.room.sandbox
    sent: Counter[str] = Counter()
    for request in sandbox.requests(method="POST"):
        if request["path"] == "/v1/refunds":
            sent[request["payment_ref"]] += 1
    made: dict[str, int] = defaultdict(int)
    for refund in sandbox.refunds(all=True):
        if (refund["operation_id"], refund["amount_minor"]) != (None, 700):  # that is F33, made by somebody else
            made[refund["payment_ref"].removesuffix("-other")] += 1
    return {
        key: Seen(End(status, frozenset(cases)), parked, sent[f"pi_{key}"], looks, made[f"pi_{key}"], late)
        for key, status, parked, looks, _, late, cases in stage.room.ask(_TOLD)
    }
