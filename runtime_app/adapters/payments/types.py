"""What a payment provider can be asked, and every answer it can give. Outcomes are values; unknown is one of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from runtime_app.money import Money


@dataclass(frozen=True, slots=True)
class ProviderAccount:
    """One account at one provider. `base_url` empty means the provider's own address; `settings` are the provider's
    own (a bank's: whose account pays). Every one of `notice_secrets` is good: there are two while one is replaced.
    """

    id: str
    provider: str
    api_key: str = field(repr=False)
    base_url: str = ""
    mode: str = "test"  # test | live
    settings: Mapping[str, str] = field(default_factory=dict)
    notice_secrets: tuple[str, ...] = field(default=(), repr=False)
    time_zone: str = "UTC"  # the provider's days
    closed: bool = False  # nothing new is sent there; what was sent is still asked for
    default: bool = False  # of the tenant, for payments whose account nobody names


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
    retry_after: float | None = None  # seconds that the provider asks to wait, where it says so


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

    @property
    def nameless(self) -> bool:
        """All is as asked for but our reference, which it does not carry: a look can still tell whose it is."""
        return self.differs == ("operation",) and self.refund.operation_ref is None


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
class NoSuchRefund:
    """The provider answered, and has no refund of this reference."""

    seen: Observation


@dataclass(frozen=True, slots=True)
class RefundPage:
    """Newest first. `next_cursor` None: there is no more."""

    refunds: tuple[ProviderRefund, ...]
    next_cursor: str | None
    seen: Observation


@dataclass(frozen=True, slots=True)
class PaymentSnapshot:
    """`live` is what the provider says of the mode, None when it says nothing."""

    payment_ref: str
    captured: Money
    refunded: Money
    seen: Observation
    live: bool | None = None
    disputed: bool = False


# --- what a provider tells by itself ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice whose signature is right. It is a hint that something changed, never the truth by itself."""

    event_id: str
    kind: str
    refund_ref: str | None = None
    operation_ref: str | None = None
    payment_ref: str | None = None
    says: str = ""  # the status it tells of, for the record only
    occurred_at: datetime | None = None
    live: bool | None = None


@dataclass(frozen=True, slots=True)
class NoticeRefused:
    """Not signed with a secret of this account, too old, or not readable."""

    why: str


class LineKind(StrEnum):
    REFUND = "refund"
    REFUND_FAILED = "refund_failed"  # money of a refund that came back
    DISPUTE = "dispute"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class StatementLine:
    """One booking. `amount` is signed: negative left the account, positive came in. `booked` is what it was in the
    account's own currency, when the provider exchanged it for that; `fee` is in the currency of what was booked.
    """

    ref: str
    kind: LineKind
    amount: Money
    occurred_at: datetime
    raw_sha256: str
    provider_ref: str | None = None
    our_ref: str | None = None  # the operation's id as the provider gives it back
    payment_ref: str | None = None
    settled_on: date | None = None
    fee: Money | None = None
    live: bool | None = None
    booked: Money | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One day of one account as the provider tells it. `trouble` says why it is not the whole day; empty: it is, as far
    as the provider's paging tells. Balances and counts are None where the provider gives none.
    """

    day: date
    lines: tuple[StatementLine, ...]
    sha256: str
    source: str  # list | camt.053
    account_ref: str = ""
    sequence: str = ""
    opening: Money | None = None
    closing: Money | None = None
    count_told: int | None = None
    trouble: str = ""
    seen: Observation | None = None


@dataclass(frozen=True, slots=True)
class BadStatement:
    """Refused as a whole, with a sentence a person can act on; nothing of it counts."""

    why: str


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
    reads_payments: bool = True  # what was captured and refunded of a payment can be asked for
    sweeps: bool = False  # all refunds of a time can be listed, whatever their payment
    notices: bool = False
    statement: str = "none"  # list | camt.053 | none
    needs_destination: bool = False


class PaymentProvider(Protocol):
    """No method raises for a business outcome, and none tries again by itself."""

    name: str
    adapter_version: str

    def capabilities(self, account: ProviderAccount) -> Capabilities: ...

    def check_account(self, account: ProviderAccount) -> Mapping[str, str]:
        """What is missing or wrong in the account's own settings: sentences by the setting's name; empty: usable."""

    def check_representable(self, amount: Money) -> str | None:
        """A sentence that says why the provider cannot move this amount, or None when it can."""

    def check_destination(self, destination: str | None) -> str | None:
        """A sentence that says why money cannot be sent there, or None. Most providers pay back where it came from."""

    def freeze(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, amount: Money, reason: str | None,
        destination: str | None = None,
    ) -> RefundRequest: ...

    def create_refund(
        self, account: ProviderAccount, request: RefundRequest, *, idempotency_key: str, resend: bool,
        deadline: Deadline,
    ) -> CreateResult: ...

    def find_refunds(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, currency: str, deadline: Deadline
    ) -> FindResult:
        """The refunds that carry this operation's id, of this payment."""

    def retrieve_refund(
        self, account: ProviderAccount, *, refund_ref: str, deadline: Deadline
    ) -> Found | NoSuchRefund | Inconclusive:
        """One refund by the provider's reference, whoever made it."""

    def list_refunds(
        self, account: ProviderAccount, *, payment_ref: str | None, since: datetime | None, cursor: str | None,
        deadline: Deadline,
    ) -> RefundPage | Inconclusive:
        """One page of all refunds, newest first, of one payment or of the whole account; those before `since` may be
        left out, and reading may stop at the first of them."""

    def retrieve_payment(
        self, account: ProviderAccount, *, payment_ref: str, deadline: Deadline
    ) -> PaymentSnapshot | Inconclusive: ...

    def cancel_refund(
        self, account: ProviderAccount, *, refund_ref: str, idempotency_key: str, deadline: Deadline
    ) -> CreateResult: ...

    def read_statement(
        self, account: ProviderAccount, *, day: date, deadline: Deadline
    ) -> Statement | BadStatement | Inconclusive:
        """One day of the account, in the provider's time zone, all pages of it."""

    def parse_statement(self, account: ProviderAccount, raw: bytes) -> Statement | BadStatement:
        """A statement that came as a file."""

    def parse_notice(
        self, account: ProviderAccount, *, headers: Mapping[str, str], body: bytes, now: datetime
    ) -> Notice | NoticeRefused:
        """Check the signature over the raw body against the account's secrets and the replay window, then read it."""
