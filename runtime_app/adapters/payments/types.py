"""What a payment provider can be asked, and every answer it can give. Outcomes are values; unknown is one of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from runtime_app.money import Money


@dataclass(frozen=True, slots=True)
class ProviderAccount:
    """One account at one provider. `base_url` empty means the provider's own address."""

    id: str
    provider: str
    api_key: str = field(repr=False)
    base_url: str = ""
    mode: str = "test"


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant on this process's monotonic clock after which nothing may be sent any more.

    A sender's is the end of its lease. No wait for an answer lasts longer than what was left when it began.
    """

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        return self.at - time.monotonic()


@dataclass(frozen=True, slots=True)
class RefundRequest:
    """A frozen request: `body` is sent byte for byte, however often it is sent."""

    operation_id: UUID
    payment_ref: str
    amount: Money
    body: bytes
    body_sha256: str
    api_version: str


class RefundStatus(StrEnum):
    SUCCEEDED = "succeeded"
    PENDING = "pending"
    REQUIRES_ACTION = "requires_action"
    FAILED = "failed"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class ProviderRefund:
    ref: str
    operation_ref: str | None
    payment_ref: str
    amount: Money
    status: RefundStatus
    failure_reason: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen on the wire, for the evidence row: never a secret, the body only as a digest and redacted."""

    request_line: str
    http_status: int | None
    provider_request_id: str | None
    body_sha256: str | None
    body: Any
    api_version: str
    adapter_version: str
    pages: int = 1
    complete: bool = True
    consistency: str = "strong"
    replayed: bool = False
    cause: str | None = None


# --- the answers to a create (a first send or a same-key resend) -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Succeeded:
    refund: ProviderRefund
    seen: Observation


@dataclass(frozen=True, slots=True)
class Pending:
    refund: ProviderRefund
    seen: Observation


@dataclass(frozen=True, slots=True)
class Declined:
    """The provider took the request and said no: a failed refund, or a definite refusal on the first send."""

    code: str
    seen: Observation
    refund: ProviderRefund | None = None


@dataclass(frozen=True, slots=True)
class Throttled:
    """Refused before it was looked at; nothing was done."""

    retry_after: float | None
    seen: Observation


@dataclass(frozen=True, slots=True)
class NotSent:
    """The request provably never reached the provider, or was turned away at its door (401, 403)."""

    cause: str
    seen: Observation


@dataclass(frozen=True, slots=True)
class KeyInProgress:
    seen: Observation


@dataclass(frozen=True, slots=True)
class KeyConflict:
    seen: Observation


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A refund came back that is not the one asked for (amount, currency, payment or operation differ)."""

    refund: ProviderRefund
    differs: tuple[str, ...]
    seen: Observation


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """It may or may not have happened. `key_burned`: the key now replays a stored server error."""

    stage: str
    cause: str
    seen: Observation
    key_burned: bool = False


CreateResult = (
    Succeeded | Pending | Declined | Throttled | NotSent | KeyInProgress | KeyConflict | Mismatch | OutcomeUnknown
)


# --- the answers to a look-up ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """Refunds that carry our operation id."""

    refunds: tuple[ProviderRefund, ...]
    seen: Observation


@dataclass(frozen=True, slots=True)
class Absent:
    """A strong, complete look found nothing of ours, and every refunded unit of the payment has a name.

    `lookalikes`: refunds of the payment without our id; they are suggestions for a person and prove nothing.
    """

    seen: Observation
    lookalikes: tuple[ProviderRefund, ...] = ()


@dataclass(frozen=True, slots=True)
class Inconclusive:
    cause: str
    seen: Observation


FindResult = Found | Absent | Inconclusive


@dataclass(frozen=True, slots=True)
class PaymentSnapshot:
    payment_ref: str
    captured: Money
    refunded: Money
    seen: Observation


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider promises; None for a window means it promises nothing."""

    key_window: float | None
    replays: str  # all | success_only | latest_status | none
    compares_body: bool
    key_max_len: int
    lookup: str  # by_operation_ref | by_payment | by_ref | none
    lookup_consistency: str  # strong | eventual
    can_cancel: frozenset[RefundStatus]
    max_in_flight: float | None = None


class PaymentProvider(Protocol):
    """No method raises for a business outcome, and none tries again by itself."""

    name: str
    adapter_version: str

    def capabilities(self, account: ProviderAccount) -> Capabilities: ...

    def check_representable(self, amount: Money) -> str | None:
        """A sentence that says why the provider cannot move this amount, or None when it can."""

    def freeze(self, *, operation_id: UUID, payment_ref: str, amount: Money, reason: str | None) -> RefundRequest: ...

    def create_refund(
        self, account: ProviderAccount, request: RefundRequest, *, idempotency_key: str, resend: bool,
        deadline: Deadline,
    ) -> CreateResult: ...

    def find_refunds(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, currency: str, deadline: Deadline
    ) -> FindResult: ...

    def retrieve_payment(
        self, account: ProviderAccount, *, payment_ref: str, deadline: Deadline
    ) -> PaymentSnapshot | Inconclusive: ...

    def cancel_refund(
        self, account: ProviderAccount, *, refund_ref: str, idempotency_key: str, deadline: Deadline
    ) -> CreateResult: ...
