"""The shapes of the API: what a caller may send, strictly, and what every answer has."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import ConfigDict, Field

from runtime_app.money import MAX_MINOR
from runtime_app.states import OperationState, Status

Minor = Annotated[int, Field(ge=1, le=MAX_MINOR, description="Whole minor units of the currency: 1250 is 12.50 EUR.")]
Revision = Annotated[int, Field(ge=1, lt=2**31, description="The task's revision that you saw.")]


def _absent(description: str = "") -> Any:
    """May be left out, and is then not given; null is not a way to say so and is refused."""
    return Field(default=None, description=description, json_schema_extra=_without_default)


def _without_default(schema: dict[str, Any]) -> None:
    # Pydantic would print null as the default, which is the one value that may not be sent.
    schema.pop("default", None)


class Body(Schema):
    model_config = ConfigDict(strict=True, extra="forbid")


class TaskBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "workflow": "refund", "order_ref": "ORD-1001", "amount_minor": 1250, "currency": "EUR",
                "reason": "Arrived broken", "on_behalf_of": "rita",
            }
        }
    )
    workflow: str = Field(description="Which workflow; `refund`.")
    order_ref: str = Field(description="The order, as the order system names it.")
    payment_ref: str = _absent("The payment of that order; needed when it has several.")
    amount_minor: Minor = _absent("Left out: the task waits for it. In whole minor units of the currency.")
    currency: str = _absent("ISO 4217, in capitals.")
    reason: str = _absent("Why, in words that the approver and the customer's support may read.")
    session: str = _absent("The conversation this belongs to, by your own reference.")
    on_behalf_of: str = _absent("The username of the person of this tenant who stands behind the request.")
    metadata: dict[str, Any] = _absent("Anything of your own; kept and given back, never acted on.")


class InputBody(Body):
    revision: Revision
    fields: dict[str, Any] = Field(description="A value for each field in the task's `waiting_for`.")


class AmendBody(Body):
    revision: Revision
    amount_minor: Minor = _absent()
    reason: str = _absent()


class CancelBody(Body):
    reason: str = Field(description="Why it is cancelled; required.")


class FieldProblem(Schema):
    field: str
    message: str


class Problem(Schema):
    """RFC 9457 problem details, sent as `application/problem+json`."""

    type: str
    title: str
    status: int
    code: str = Field(description="Stable; meant for programs.")
    detail: str = Field(description="For people.")
    errors: list[FieldProblem] = Field(default_factory=list, description="With 422 and 400: which fields, and why.")
    revision: int | None = Field(default=None, description="With 409: the task's revision now.")
    current_status: Status | None = Field(default=None, description="With 409: the task's status now.")
    task_id: UUID | None = Field(default=None, description="With 409 `idempotency_conflict`: the task of that key.")


class Links(Schema):
    self: str
    events: str
    stream: str
    operations: str
    attempts: str
    approvals: str
    page: str = Field(description="The task in the console, for people.")


class TaskOut(Schema):
    id: UUID
    status: Status
    revision: int
    workflow: str
    workflow_version: int
    request_key: str
    order_ref: str
    payment_ref: str | None
    amount_minor: int | None
    currency: str | None
    reason: str | None
    on_behalf_of: str | None
    session: str | None
    metadata: dict[str, Any]
    waiting_for: dict[str, str] = Field(description="While `waiting_input`: each missing field with what is needed.")
    parked_reason: str | None
    attention: str | None = Field(description="Set when money did something else than the task's end says.")
    cancel_wished_at: datetime | None
    created_at: datetime
    status_since: datetime
    links: Links


class TaskPage(Schema):
    tasks: list[TaskOut]
    next_cursor: str | None


class EventOut(Schema):
    task_id: UUID
    seq: int = Field(description="1, 2, 3 … within the task, without a gap.")
    type: str
    actor: str
    at: datetime
    data: dict[str, Any] | None = Field(description="Null once retention has removed it.")


class EventPage(Schema):
    events: list[EventOut]
    next_after: int = Field(description="Pass it as `after` to go on; also when there is nothing more yet.")
    more: bool


class CallOut(Schema):
    kind: Literal["submit", "resend", "query", "cancel"]
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    finding: str


class OperationOut(Schema):
    id: UUID = Field(description="Also the key and reference the provider knows it by.")
    effect: str
    ordinal: int
    state: OperationState
    order_ref: str
    payment_ref: str
    amount_minor: int
    currency: str
    provider_ref: str | None
    first_submit_at: datetime | None
    last_possible_send_at: datetime | None
    next_check_at: datetime | None
    checks: int
    resends: int
    case: str | None
    created_at: datetime
    calls: list[CallOut] = Field(description="The newest calls, oldest first.")


class Operations(Schema):
    operations: list[OperationOut]


class StepOut(Schema):
    name: str
    outcome: str
    active_ms: float
    ended_at: datetime


class AttemptOut(Schema):
    fence: int = Field(description="Names the attempt within its task; it grows.")
    workflow_version: int
    started_at: datetime
    steps: list[StepOut]


class AttemptPage(Schema):
    attempts: list[AttemptOut]
    next_after: int
    more: bool


class ReviewOut(Schema):
    name: str
    quorum: int


class DecisionOut(Schema):
    person: str
    for_person: str | None
    review: str
    verdict: Literal["approve", "reject", "ask_input"]
    reason: str
    decided_at: datetime
    withdrawn_at: datetime | None


class ApprovalOut(Schema):
    id: UUID
    state: str
    fingerprint: str
    facts: dict[str, Any]
    policy_version: int
    quorum: int
    reviews: list[ReviewOut]
    asked_at: datetime
    deadline_at: datetime
    closed_at: datetime | None
    closed_why: str
    decisions: list[DecisionOut]
    page: str


class Approvals(Schema):
    approvals: list[ApprovalOut]
