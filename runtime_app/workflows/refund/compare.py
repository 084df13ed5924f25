"""The last look before submitting: the provider's figures of the payment, the order system's and ours must agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtime_app.adapters.payments.types import Inconclusive, PaymentSnapshot
from runtime_app.ledger.cases import OpenCase
from runtime_app.ledger.explained import differs
from runtime_app.money import Money
from runtime_app.workflows.refund.facts import BalanceFacts, RefundFacts
from runtime_app.workflows.refund.order import CannotRefund, Judged, NotNow
from runtime_app.workflows.types import Ports


@dataclass(frozen=True, slots=True)
class Unexplained:
    """The provider's total is not the sum that we can name: the payment's refunds are to be looked at one by one."""

    why: str


def compare(facts: RefundFacts, ports: Ports, judged: Judged) -> NotNow | CannotRefund | OpenCase | Unexplained | None:
    """None when all agree, or when the provider cannot be asked about payments at all."""
    account, balance = judged.account, judged.balance
    provider = ports.provider(account)
    known = facts.balance(account.id, balance.payment_ref)
    if not provider.capabilities(account).reads_payments or known.in_doubt:
        return None  # with a sibling in doubt nothing is submitted anyway
    answer = provider.retrieve_payment(account, payment_ref=balance.payment_ref, deadline=ports.sending)
    if isinstance(answer, Inconclusive):
        if answer.seen.http_status in {401, 403, 404}:
            return None  # the send is told the same, and what it is told has its own way
        return NotNow(f"the provider cannot be asked about the payment: {answer.cause}")
    return _judged(known, judged, answer)


def _judged(known: BalanceFacts, judged: Judged, told: PaymentSnapshot) -> CannotRefund | OpenCase | Unexplained | None:
    balance, account = judged.balance, judged.account
    if told.live is not None and told.live != (account.mode == "live"):
        return _case(judged, "ACCOUNT_OR_MODE", f"The provider says that this payment is not of {account.mode} mode.")
    if told.disputed:
        return CannotRefund("disputed", "The customer's bank disputes this payment; the provider refunds none of it.")
    captured = Money(balance.captured_minor, balance.currency)
    off = differs(
        captured=told.captured.minor - captured.minor,
        refunded=told.refunded.minor - known.refunded_minor - known.external_provider_minor,
    )
    if off and off == known.explained and told.captured.currency == captured.currency:
        return None
    if told.captured != captured:
        return _case(judged, "BALANCE_DISAGREES", f"The order system says {captured} were captured, the provider"
                     f" {told.captured}.", off)
    if told.refunded.minor != known.refunded_minor + known.external_provider_minor:
        return Unexplained(f"the provider shows {told.refunded} refunded of {balance.payment_ref}, which is not what is"
                           " known here")
    return None


def _case(judged: Judged, class_name: str, why: str, off: Mapping[str, int] | None = None) -> OpenCase:
    balance = judged.balance
    return OpenCase(
        class_name, balance.account, balance.payment_ref, balance.order_ref, currency=balance.currency,
        amount_minor=balance.captured_minor, why=why, details={"differs": dict(off)} if off else {},
        matter=f"{balance.account}:{balance.payment_ref}",
    )
