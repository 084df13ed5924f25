"""The same few levers for every payment provider that the conformance tests are run against."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID, uuid4

from runtime_app.adapters.payments.memory import MemoryPayments
from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import (
    CreateResult,
    Deadline,
    FindResult,
    PaymentProvider,
    ProviderAccount,
    RefundRequest,
    RefundStatus,
)
from runtime_app.money import Money
from tests.sandbox_process import SandboxProcess

_numbers = itertools.count(1)
_MEMORY = {"F1": "refused", "F2": "lost_before", "F4": "lost_after", "F10": "error_before", "F11": "error_after",
           "F12": "throttled", "F13": "key_in_use", "F21": "pending", "F22": "requires_action"}


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

    def open_payment(self, captured: int = 10000, currency: str = "USD") -> str: ...

    def moved(self, payment_ref: str) -> list[tuple[int, str | None]]: ...

    def goes_wrong(self, code: str, payment_ref: str, *, failed: bool = False) -> None: ...

    def settle(self, refund_ref: str, status: RefundStatus) -> None: ...

    def refund_outside(self, payment_ref: str, amount: int) -> None: ...


@dataclass
class StripeAtSandbox:
    sandbox: SandboxProcess
    payments: PaymentProvider = field(
        default_factory=lambda: StripePayments(connect_timeout=5.0, read_timeout=10.0)
    )
    destination: str | None = None

    @property
    def account(self) -> ProviderAccount:
        return ProviderAccount("acct_1", "stripe", "sk_test_conformance1", self.sandbox.url)

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


@dataclass
class InMemory:
    payments: MemoryPayments = field(default_factory=MemoryPayments)
    account: ProviderAccount = field(default_factory=lambda: ProviderAccount("acct_1", "memory", "sk_none"))
    destination: str | None = None

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


@dataclass
class Refunding:
    """One refund as the product would make it: one operation, one key, one frozen body."""

    provider: At
    payment_ref: str
    amount: Money
    operation_id: UUID = field(default_factory=uuid4)

    @property
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
