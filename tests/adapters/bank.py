"""The bank with the levers that the conformance tests pull at every provider, as far as a bank has them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from uuid import uuid4

from runtime_app.adapters.payments.bank import BankPayments
from runtime_app.adapters.payments.bank_pain import operation_ref, our_id
from runtime_app.adapters.payments.bank_xml import read_document
from runtime_app.adapters.payments.types import PaymentProvider, ProviderAccount, RefundStatus
from runtime_app.money import Money
from tests.adapters.bank_process import ELSEWHERE, IBAN, BankProcess, running_bank
from tests.adapters.bank_relay import FORWARDED, HANGS, INSTEAD, Relay

DESTINATION = f"{ELSEWHERE} Noor de Vries"
SETTINGS = {"debtor_iban": IBAN, "debtor_name": "ACME Corporation", "debtor_bic": "MOCKNL2A"}
NOWHERE = "http://127.0.0.1:1"
_numbers = itertools.count(1)


class TheBankHasNone(NotImplementedError):
    """A bank has nothing like this; what it has instead stands in its capability record."""


def bank_account(url: str, **settings: str) -> ProviderAccount:
    return ProviderAccount("bank_1", "bank", "", url, settings=SETTINGS | settings)


@dataclass
class BankAtMockBank:
    """`open_payment` only makes up a reference: a bank does not know what a transfer refunds."""

    bank: BankProcess
    relay: Relay
    payments: PaymentProvider = field(default_factory=lambda: BankPayments(connect_timeout=5.0, read_timeout=10.0))
    destination: str | None = DESTINATION
    currency: str = "EUR"
    _refuses: bool = False

    @property
    def account(self) -> ProviderAccount:
        return bank_account(NOWHERE if self._refuses else self.relay.url)

    def open_payment(self, captured: int = 10000, currency: str = "EUR") -> str:
        if currency != "EUR":
            raise TheBankHasNone("the account is held in EUR")
        return f"pi_b{next(_numbers)}"

    def moved(self, payment_ref: str) -> list[tuple[int, str | None]]:
        """What was paid or is going to be, of the files in which this payment is named."""
        named = {end for file in self.relay.files for end, about in [_named_in(file)] if about == payment_ref}
        return [(p["amount"], operation_ref(p["end_to_end_id"])) for p in self.bank.payments()
                if p["end_to_end_id"] in named and p["status"] == "accepted"]

    def goes_wrong(self, code: str, payment_ref: str, *, failed: bool = False) -> None:
        if code == "F1":
            self._refuses = True
        elif code == "F21":  # every transfer is pending at first
            if failed:
                self.bank.behave("insufficient-funds", balance=0)
        elif code in INSTEAD.keys() | FORWARDED | HANGS:
            self.relay.faults.append(code)
        else:
            raise TheBankHasNone(code)

    def settle(self, refund_ref: str, status: RefundStatus) -> None:
        """Let the days pass until the bank has booked it, and until it came back if it is to fail."""
        if status is RefundStatus.FAILED:
            self.bank.behave("return-later", days=1, end_to_end_id=refund_ref)
        elif status is not RefundStatus.SUCCEEDED:
            raise TheBankHasNone(status)
        self.bank.advance(7)

    def booked_on(self, refund_ref: str) -> list[date]:
        return [date.fromisoformat(told["day"]) for told in self.bank.statements() if told["entries"]]

    def refund_outside(self, payment_ref: str, amount: int) -> None:
        """A transfer of somebody else from the same account, with an id that is not an operation's."""
        made = self.payments.freeze(
            self.account, operation_id=uuid4(), payment_ref=payment_ref, amount=Money(amount, "EUR"), reason=None,
            destination=self.destination,
        )
        theirs = f"INV-{next(_numbers)}".encode()
        assert self.bank.hand_in(made.body.replace(our_id(made.operation_id).encode(), theirs))["status"] == "ACCP"


def _named_in(file: bytes) -> tuple[str, str]:
    """The EndToEndId and the payment that a file names."""
    message = read_document(file, ("pain.001.001.09",), "CstmrCdtTrfInitn")
    payment = "PmtInf/CdtTrfTxInf/"
    return message.need(payment + "PmtId/EndToEndId"), message.need(payment + "RmtInf/Ustrd").split()[0]


@contextmanager
def bank_at_mock_bank(folder: Path) -> Iterator[BankAtMockBank]:
    """A bank that books on the day after the file, so that what it accepted is pending until then."""
    with running_bank(folder, early=False) as bank:
        relay = Relay(bank.url)
        try:
            yield BankAtMockBank(bank, relay)
        finally:
            relay.close()
