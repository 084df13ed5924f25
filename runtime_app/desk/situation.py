"""Everything that a case page shows and that the rules ask for, read at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runtime_app.adapters.payments.types import Capabilities
from runtime_app.models import Balance, Call, Case, CaseEntry, Evidence, Operation, StatementLine, Task, User
from runtime_app.states import UNRESOLVED, OperationState, Status


@dataclass(frozen=True, slots=True)
class Shown:
    """A refund as the provider has shown it."""

    ref: str
    payment_ref: str
    amount_minor: int
    currency: str
    status: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a first person has declared: `what` is a kind of `outcomes.CODES`, `code` a word of it."""

    entry: CaseEntry
    what: str
    code: str
    reason: str
    person: User


@dataclass(frozen=True, slots=True)
class Times:
    """When what becomes possible or ends; None where nothing was sent or nothing was seen."""

    horizon_at: datetime | None = None  # nothing sent so far can be acted on by the provider after this
    key_window_ends_at: datetime | None = None  # the last moment of a same-key resend
    handover_at: datetime | None = None
    next_look_at: datetime | None = None
    fresh_until: datetime | None = None  # until then the last complete look may carry a decision


@dataclass(frozen=True, slots=True)
class Situation:
    """`evidence_sha256` is what a decision is bound to. `declaration` counts; `outdated` no longer does."""

    case: Case
    operation: Operation | None
    task: Task | None
    balance: Balance | None
    capabilities: Capabilities | None
    now: datetime
    times: Times
    evidence: tuple[Evidence, ...]
    calls: tuple[Call, ...]
    lines: tuple[StatementLine, ...]
    entries: tuple[CaseEntry, ...]
    others: tuple[Case, ...]
    shown: tuple[Shown, ...]
    last_look: Evidence | None
    last_complete: Evidence | None
    absents: int
    sends: int
    evidence_sha256: str
    declaration: Declaration | None
    outdated: Declaration | None
    ask: CaseEntry | None
    follow_up: Task | None
    recorded: str  # people have accepted in a case of this operation what the provider did instead

    @property
    def open(self) -> bool:
        return self.case.state == "open"

    @property
    def snoozed(self) -> bool:
        return self.open and self.case.snoozed_until is not None and self.case.snoozed_until > self.now

    @property
    def overdue(self) -> bool:
        return self.open and self.case.deadline_at < self.now

    @property
    def in_doubt(self) -> bool:
        """The operation's outcome is not proved."""
        return self.operation is not None and self.operation.state in UNRESOLVED

    @property
    def reconciling(self) -> bool:
        return self.in_doubt and self.task is not None and self.task.status == Status.RECONCILING

    @property
    def cancel_wished(self) -> bool:
        return self.task is not None and self.task.cancel_wished_at is not None

    @property
    def horizon_at(self) -> datetime | None:
        return self.times.horizon_at

    @property
    def horizon_passed(self) -> bool:
        return self.times.horizon_at is not None and self.times.horizon_at <= self.now

    @property
    def key_window_ends_at(self) -> datetime | None:
        return self.times.key_window_ends_at

    @property
    def handover_at(self) -> datetime | None:
        return self.times.handover_at

    @property
    def next_look_at(self) -> datetime | None:
        return self.times.next_look_at

    @property
    def fresh_until(self) -> datetime | None:
        return self.times.fresh_until

    @property
    def fresh(self) -> bool:
        return self.times.fresh_until is not None and self.times.fresh_until > self.now

    @property
    def parties(self) -> frozenset[int]:
        """Who asked for the refund or said how much: they do not decide about it."""
        if self.task is None:
            return frozenset()
        shaped: Any = self.task.state.get("shaped_by", ())
        return frozenset({*shaped, *((self.task.requester_id,) if self.task.requester_id else ())})

    @property
    def found(self) -> Shown | None:
        """The one settled refund that the provider has made instead of what was asked for."""
        if self.operation is None or len(self.shown) != 1:
            return None
        one, asked = self.shown[0], self.operation
        same = (one.payment_ref, one.currency, one.amount_minor) == (
            asked.payment_ref, asked.currency, asked.amount_minor)
        return one if one.status == "succeeded" and not same and one.ref == asked.provider_ref else None

    @property
    def sent_back(self) -> bool:
        """What was asked for is not with the customer, and it is proved or declared so."""
        if self.operation is None or self.task is None:
            return False
        if self.case.class_name == "RETURNED":
            return self.operation.state == OperationState.RETURNED
        gone = self.operation.state in {OperationState.NOT_EXECUTED, OperationState.FAILED}
        return gone and not self.open and self.case.outcome in {"not_executed", "failed"}

    @property
    def most_minor(self) -> int:
        """The most that a follow-up may be, in minor units of the operation's currency; 0 when there is none."""
        return self.operation.amount_minor if self.operation is not None and self.sent_back else 0
