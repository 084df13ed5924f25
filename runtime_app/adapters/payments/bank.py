"""Refunds by bank transfer, with ISO 20022: pain.001 out, camt.053 in. Spoken to mock-bank's own HTTP doors.

Asynchronous and without an idempotency key: the operation's id is message and payment id at once, a bank refuses a
message that it had before (DUPL), and a file is therefore never varied and never sent again by us.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from uuid import UUID

from runtime_app.adapters.payments.bank_camt import parse_camt053
from runtime_app.adapters.payments.bank_client import ADAPTER_VERSION, BankCalls, observed
from runtime_app.adapters.payments.bank_days import read_day
from runtime_app.adapters.payments.bank_evidence import KEPT, judge_create
from runtime_app.adapters.payments.bank_pain import VERSION, our_id, write_pain001
from runtime_app.adapters.payments.bank_search import find_by_id, retrieve
from runtime_app.adapters.payments.bank_settings import Creditor, account_trouble, read_debtor, read_destination
from runtime_app.adapters.payments.days import known_zone
from runtime_app.adapters.payments.types import (
    BadStatement,
    Capabilities,
    CreateResult,
    Deadline,
    Declined,
    FindResult,
    Found,
    Inconclusive,
    NoSuchRefund,
    Notice,
    NoticeRefused,
    PaymentSnapshot,
    ProviderAccount,
    RefundPage,
    RefundRequest,
    Statement,
)
from runtime_app.errors import FieldErrors
from runtime_app.money import Money

# A file that a bank has in its hands just before Easter is looked at four days later.
MAX_IN_FLIGHT = 4 * 24 * 3600.0
_CAPABILITIES = Capabilities(
    key_window=None, replays="none", compares_body=False, key_max_len=35, lookup="by_operation_ref",
    lookup_consistency="strong", can_cancel=frozenset(), max_in_flight=MAX_IN_FLIGHT, reads_payments=False,
    sweeps=False, notices=False, statement="camt.053", needs_destination=True,
)


class BankPayments:
    """May be called from many threads at once."""

    name = "bank"
    adapter_version = ADAPTER_VERSION

    def __init__(self, *, connect_timeout: float, read_timeout: float) -> None:
        self._calls = BankCalls(connect_timeout, read_timeout)

    def capabilities(self, account: ProviderAccount) -> Capabilities:
        return _CAPABILITIES

    def check_account(self, account: ProviderAccount) -> Mapping[str, str]:
        return account_trouble(account)

    def check_representable(self, amount: Money) -> str | None:
        """An ISO 20022 amount has 18 digits and 5 decimals, which holds everything that Money does."""
        return "A refund is at least one minor unit." if amount.minor < 1 else None

    def check_destination(self, destination: str | None) -> str | None:
        read = read_destination(destination)
        return read if isinstance(read, str) else None

    def freeze(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, amount: Money, reason: str | None,
        destination: str | None = None,
    ) -> RefundRequest:
        """The payment file's bytes. FieldErrors when the checks of account, amount or destination would refuse."""
        creditor, zone = read_destination(destination), known_zone(account.time_zone)
        troubles = dict(account_trouble(account)) | _named(self.check_representable(amount), "amount_minor")
        if not isinstance(creditor, Creditor) or zone is None or troubles:
            raise FieldErrors(troubles | _named(self.check_destination(destination), "destination"))
        body = write_pain001(
            read_debtor(account), creditor, operation_id=operation_id, amount=amount,
            remittance=f"{payment_ref} {reason or ''}", at=datetime.now(UTC), zone=zone,
        )
        return RefundRequest(operation_id, payment_ref, amount, body, hashlib.sha256(body).hexdigest(), VERSION)

    def create_refund(
        self, account: ProviderAccount, request: RefundRequest, *, idempotency_key: str, resend: bool,
        deadline: Deadline,
    ) -> CreateResult:
        """Hand the file in. The key goes nowhere: a bank knows files by the ids that are in them."""
        answer = self._calls.ask(account, "create", "/payments", deadline=deadline, file=request.body, kept=KEPT)
        return judge_create(answer, request, resend=resend)

    def find_refunds(
        self, account: ProviderAccount, *, operation_id: UUID, payment_ref: str, currency: str, deadline: Deadline
    ) -> FindResult:
        return find_by_id(self._calls, account, our_id(operation_id), payment_ref, deadline)

    def retrieve_refund(
        self, account: ProviderAccount, *, refund_ref: str, deadline: Deadline
    ) -> Found | NoSuchRefund | Inconclusive:
        """The payment that it refunds is empty in the answer: a bank does not know it."""
        return retrieve(self._calls, account, refund_ref, deadline)

    def list_refunds(
        self, account: ProviderAccount, *, payment_ref: str | None, since: datetime | None, cursor: str | None,
        deadline: Deadline,
    ) -> RefundPage | Inconclusive:
        return Inconclusive("the bank cannot list refunds", observed("(nothing asked)", None))

    def retrieve_payment(
        self, account: ProviderAccount, *, payment_ref: str, deadline: Deadline
    ) -> PaymentSnapshot | Inconclusive:
        return Inconclusive("the bank does not know the payments that are refunded", observed("(nothing asked)", None))

    def cancel_refund(
        self, account: ProviderAccount, *, refund_ref: str, idempotency_key: str, deadline: Deadline
    ) -> CreateResult:
        return Declined("not_cancelable", observed("(nothing asked)", None))

    def read_statement(
        self, account: ProviderAccount, *, day: date, deadline: Deadline
    ) -> Statement | BadStatement | Inconclusive:
        return read_day(self._calls, account, day, deadline)

    def parse_statement(self, account: ProviderAccount, raw: bytes) -> Statement | BadStatement:
        return parse_camt053(account, raw)

    def parse_notice(
        self, account: ProviderAccount, *, headers: Mapping[str, str], body: bytes, now: datetime
    ) -> Notice | NoticeRefused:
        return NoticeRefused("a bank sends no notices; its statements tell what happened")


def _named(sentence: str | None, field: str) -> dict[str, str]:
    return {field: sentence} if sentence else {}
