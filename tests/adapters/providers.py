"""The same few levers for every payment provider that the conformance tests are run against."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Protocol, TypeVar
from uuid import UUID, uuid4

from stripe import WebhookSignature

from runtime_app.adapters.payments.memory import MemoryPayments
from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import (
    Capabilities,
    CreateResult,
    Deadline,
    FindResult,
    Found,
    PaymentProvider,
    Pending,
    ProviderAccount,
    ProviderRefund,
    RefundRequest,
    RefundStatus,
    Succeeded,
)
from runtime_app.money import Money
from tests.sandbox_process import SandboxProcess

_numbers = itertools.count(1)
_MEMORY = {"F1": "refused", "F2": "lost_before", "F4": "lost_after", "F10": "error_before", "F11": "error_after",
           "F12": "throttled", "F13": "key_in_use", "F21": "pending", "F22": "requires_action", "F31": "nameless"}
SECRET, OLD_SECRET = "whsec_conformance", "whsec_before"
Test = TypeVar("Test", bound=Callable[..., object])


def needs(able: Callable[[Capabilities], bool]) -> Callable[[Test], Test]:
    """Run this test against those providers only whose capability record says so."""
    def marked(test: Test) -> Test:
        test.needs = able  # type: ignore[attr-defined]
        return test

    return marked


class At(Protocol):
    """An adapter and the account that it is used with."""

    @property
    def payments(self) -> PaymentProvider: ...

    @property
    def account(self) -> ProviderAccount: ...

    @property
    def destination(self) -> str | None: ...


class Provider(At, Protocol):
    """`goes_wrong` takes the number of a fault and arms it for the next create of this payment."""

    @property
    def currency(self) -> str: ...

    def open_payment(self, captured: int = 10000) -> str: ...

    def moved(self, payment_ref: str) -> list[tuple[int, str | None]]: ...

    def goes_wrong(self, code: str, payment_ref: str, *, failed: bool = False) -> None: ...

    def settle(self, refund_ref: str, status: RefundStatus) -> None: ...

    def refund_outside(self, payment_ref: str, amount: int) -> None: ...

    def booked_on(self, refund_ref: str) -> list[date]:
        """The days on which something of this refund was booked, each with a statement that can be read by now."""


class TellsNotices(Provider, Protocol):
    def notice(self, refund: ProviderRefund, *, at: datetime, secret: str) -> tuple[Mapping[str, str], bytes]:
        """Headers and body of a notice about this refund, signed at that instant."""


@dataclass
class StripeAtSandbox:
    sandbox: SandboxProcess
    payments: PaymentProvider = field(
        default_factory=lambda: StripePayments(connect_timeout=5.0, read_timeout=10.0)
    )
    destination: str | None = None
    currency: str = "USD"

    @property
    def account(self) -> ProviderAccount:
        return ProviderAccount("acct_1", "stripe", "sk_test_conformance1", self.sandbox.url,
                               notice_secrets=(OLD_SECRET, SECRET))

    def open_payment(self, captured: int = 10000, currency: str = "USD") -> str:
        number = next(_numbers)
        self.sandbox.order(f"ORD-C{number}", currency=currency, payments={f"pi_c{number}": captured})
        return f"pi_c{number}"

    def moved(self, payment_ref: str) -> list[tuple[int, str | None]]:
        return [(r["amount_minor"], r["operation_id"]) for r in self.sandbox.refunds(payment_ref)]

    def goes_wrong(self, code: str, payment_ref: str, *, failed: bool = False) -> None:
        more = {"seconds": 0, "then": "failed"} if failed else {}
        if code == "F1":
            self.sandbox.fault("F1")
        else:
            self.sandbox.fault(code, match={"payment_ref": payment_ref}, **more)

    def settle(self, refund_ref: str, status: RefundStatus) -> None:
        self.sandbox.set_refund(refund_ref, status.value)

    def refund_outside(self, payment_ref: str, amount: int) -> None:
        self.sandbox.fault("F33", match={"payment_ref": payment_ref}, amount_minor=amount)

    def booked_on(self, refund_ref: str) -> list[date]:
        return [datetime.now(UTC).date()]

    def notice(self, refund: ProviderRefund, *, at: datetime, secret: str) -> tuple[Mapping[str, str], bytes]:
        return stripe_notice(refund, at=at, secret=secret)


def stripe_notice(
    refund: ProviderRefund, *, at: datetime, secret: str, kind: str = "refund.updated"
) -> tuple[Mapping[str, str], bytes]:
    """As Stripe writes it, signed by the SDK."""
    about = {
        "id": refund.ref, "object": "refund", "payment_intent": refund.payment_ref, "status": refund.status,
        "metadata": {"operation_id": refund.operation_ref} if refund.operation_ref else {},
    }
    body = json.dumps({
        "id": f"evt_{uuid4().hex}", "object": "event", "type": kind, "created": int(at.timestamp()),
        "livemode": False, "data": {"object": about},
    })
    header = WebhookSignature.generate_signature_header(body, secret, int(at.timestamp()))
    return {"Stripe-Signature": header}, body.encode()


@dataclass
class InMemory:
    payments: MemoryPayments = field(default_factory=MemoryPayments)
    account: ProviderAccount = field(default_factory=lambda: ProviderAccount(
        "acct_1", "memory", "sk_none", notice_secrets=(OLD_SECRET, SECRET)))
    destination: str | None = None
    currency: str = "USD"

    def open_payment(self, captured: int = 10000, currency: str = "USD") -> str:
        ref = f"pi_m{next(_numbers)}"
        self.payments.add_payment(ref, captured, currency)
        return ref

    def moved(self, payment_ref: str) -> list[tuple[int, str | None]]:
        return [(r.amount.minor, r.operation_ref) for r in self.payments.refunds_of(payment_ref)]

    def goes_wrong(self, code: str, payment_ref: str, *, failed: bool = False) -> None:
        self.payments.next_faults.append("failed" if failed else _MEMORY[code])

    def settle(self, refund_ref: str, status: RefundStatus) -> None:
        self.payments.settle(refund_ref, status)

    def refund_outside(self, payment_ref: str, amount: int) -> None:
        self.payments.refund_outside(payment_ref, amount)

    def booked_on(self, refund_ref: str) -> list[date]:
        return sorted({b.occurred_at.date() for b in self.payments.bookings if b.provider_ref == refund_ref})

    def notice(self, refund: ProviderRefund, *, at: datetime, secret: str) -> tuple[Mapping[str, str], bytes]:
        return self.payments.notice(refund.ref, secret=secret, at=at)


@dataclass
class Refunding:
    """One refund as the product would make it: one operation, one key, one frozen body."""

    provider: At
    payment_ref: str
    amount: Money
    operation_id: UUID = field(default_factory=uuid4)

    @cached_property
    def request(self) -> RefundRequest:
        return self.provider.payments.freeze(
            self.provider.account, operation_id=self.operation_id, payment_ref=self.payment_ref, amount=self.amount,
            reason="damaged", destination=self.provider.destination,
        )

    def send(self, *, resend: bool = False, key: str | None = None, seconds: float = 20.0) -> CreateResult:
        return self.provider.payments.create_refund(
            self.provider.account, self.request, idempotency_key=key or str(self.operation_id), resend=resend,
            deadline=Deadline.after(seconds),
        )

    def find(self) -> FindResult:
        return self.provider.payments.find_refunds(
            self.provider.account, operation_id=self.operation_id, payment_ref=self.payment_ref,
            currency=self.amount.currency, deadline=Deadline.after(20),
        )


def made(provider: Provider, refund: Refunding) -> ProviderRefund:
    """Send it, let it settle where it does so later, and return it as it is then."""
    sent = refund.send()
    assert isinstance(sent, Succeeded | Pending), sent
    if isinstance(sent, Pending):
        provider.settle(sent.refund.ref, RefundStatus.SUCCEEDED)
    return only(refund.find())


def only(result: object) -> ProviderRefund:
    """The one refund that was found."""
    assert isinstance(result, Found) and len(result.refunds) == 1, result
    return result.refunds[0]
