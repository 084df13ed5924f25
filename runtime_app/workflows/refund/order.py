"""The order as it is now, judged against the request: either a problem in words or what would be refunded exactly."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runtime_app.adapters.orders.types import OrderMissing, OrderPayment, OrderSnapshot, OrderUnavailable
from runtime_app.adapters.payments.types import ProviderAccount
from runtime_app.ledger.balances import KeepBalance
from runtime_app.money import Money
from runtime_app.states import Status
from runtime_app.workflows.refund.facts import BalanceFacts, RefundFacts
from runtime_app.workflows.types import Ports

ORDER_TIMEOUT = 10.0  # seconds; an order system that is slower than this counts as not answering


@dataclass(frozen=True, slots=True)
class NotNow:
    """The order system does not answer; asking later may help. `remember` is kept with the task until then."""

    cause: str
    remember: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CannotRefund:
    """A business reason why this cannot be refunded, in words."""

    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Fields somebody must give, each with a sentence that says what is needed."""

    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Judged:
    """The order fits the request. `material` is what an approval is bound to."""

    material: Mapping[str, Any]
    balance: KeepBalance
    read: Mapping[str, Any]  # the order's version and when it was read
    account: ProviderAccount


def judge(facts: RefundFacts, ports: Ports) -> NotNow | CannotRefund | Missing | Judged:
    """Read the order and hold the request against it."""
    task = facts.task
    missing = {
        name: sentence
        for name, sentence, value in (
            ("amount_minor", "Say how much is to be refunded, in minor units.", task.amount_minor),
            ("currency", "Say in which currency.", task.currency),
        )
        if value is None
    }
    if missing:
        return Missing(missing)
    answer = ports.orders.read_order(facts.tenant.slug, task.order_ref, timeout=ORDER_TIMEOUT)
    if isinstance(answer, OrderUnavailable):
        return NotNow(f"the order system does not answer: {answer.cause}")
    if isinstance(answer, OrderMissing):
        return CannotRefund("order_unknown", f"The order system has no order {task.order_ref}.")
    return _fits(facts, ports, answer)


def _fits(facts: RefundFacts, ports: Ports, order: OrderSnapshot) -> NotNow | CannotRefund | Missing | Judged:
    task = facts.task
    assert task.amount_minor is not None and task.currency is not None  # judged missing before
    payments = {p.payment_ref: p for p in order.payments}
    if task.payment_ref is None and len(payments) > 1:
        names = ", ".join(sorted(payments))
        return Missing({"payment_ref": f"This order has several payments; name one of {names}."})
    ref = task.payment_ref or next(iter(payments), None)
    if ref is None or ref not in payments:
        return CannotRefund("payment_unknown", f"The order {task.order_ref} has no payment {ref or 'at all'}.")
    if order.currency != task.currency:
        return CannotRefund("currency_differs", f"The order is in {order.currency}, the request in {task.currency}.")
    payment = payments[ref]
    amount = Money(task.amount_minor, task.currency)
    account = _account(facts, ports, payment)
    if isinstance(account, NotNow):
        return account
    if (why := ports.provider(account).check_representable(amount)) is not None:
        return Missing({"amount_minor": why})
    if (why := ports.provider(account).check_destination(order.destination)) is not None:
        return CannotRefund("destination_unusable", why)
    strangers = {r.operation_id for r in payment.refunds if r.operation_id is not None} - facts.ours
    seen = hashlib.sha256("\n".join(sorted(strangers)).encode()).hexdigest() if strangers else None
    if seen != task.state.get("strangers") and strangers:
        # A sibling may have handed over its refund after our operations were read: look once more at these very ones
        # before they count as made outside of us.
        return NotNow("the order shows a refund of an operation that was not known a moment ago", {"strangers": seen})
    known = _without_own_hold(facts, account, ref)
    # What we took of it under another account is as gone as what somebody else took.
    told = sum(r.amount_minor for r in payment.refunds if r.operation_id not in facts.ours) + known.elsewhere_minor
    # One and the same refund may be in both records, so that the larger of the two counts and not their sum.
    external = max(told, known.external_provider_minor)
    problem = _too_much(order, payment, external, known, amount)
    if problem is not None:
        return problem
    material = {
        "tenant": facts.tenant.slug, "workflow": task.workflow, "version": task.workflow_version,
        "order_ref": task.order_ref, "payment_ref": ref, "captured_minor": payment.captured_minor,
        "external_minor": external, "amount_minor": task.amount_minor, "currency": task.currency,
        "destination": order.destination, "reason": task.reason, "policy_version": facts.tenant.policy.number,
    }
    balance = KeepBalance(
        account=account.id, order_ref=task.order_ref, payment_ref=ref, currency=order.currency,
        captured_minor=payment.captured_minor, external_minor=told, version=order.version,
    )
    return Judged(material, balance, {"version": order.version, "as_of": order.as_of.isoformat()}, account)


def _account(facts: RefundFacts, ports: Ports, payment: OrderPayment) -> ProviderAccount | NotNow:
    """The account that the order names, else the one at which we know the payment, else the tenant's own default. A
    payment does not wander because another account became the default."""
    known = [name for name in facts.balances.get(payment.payment_ref, {}) if _is_open(facts, name)]
    wanted = payment.account or next(iter(known), None) or _default(facts)
    if wanted is None and facts.accounts:
        return NotNow("the order names no account, and none of this tenant's accounts is the default one")
    if wanted is None:
        return NotNow("this tenant has no account at a payment provider yet")
    account = facts.accounts.get(wanted)
    if account is None or account.closed or account.provider not in ports.providers:
        return NotNow(f"this tenant has no open account {wanted} at a payment provider")
    return account


def _default(facts: RefundFacts) -> str | None:
    """The default account, also when it is closed: that never makes another one pay. One alone needs no name."""
    marked = [account.id for account in facts.accounts.values() if account.default]
    return next(iter(marked or facts.accounts), None) if len(marked or facts.accounts) == 1 else None


def _is_open(facts: RefundFacts, name: str) -> bool:
    account = facts.accounts.get(name)
    return account is not None and not account.closed


def held_at(facts: RefundFacts, payment_ref: str) -> str | None:
    """The account at which the task's hold was taken; None when it has none that is known of."""
    known = facts.balances.get(payment_ref, {})
    told: str | None = facts.task.state.get("account")
    return told or next((name for name, b in known.items() if b.reserved_minor), None)


def _without_own_hold(facts: RefundFacts, account: ProviderAccount, payment_ref: str) -> BalanceFacts:
    """The balance; the task's own hold, wherever it was taken, does not stand against it."""
    known, amount = facts.balance(account.id, payment_ref), facts.task.amount_minor or 0
    if facts.task.status not in {Status.READY, Status.RECONCILING}:  # a same-key resend is judged while reconciling
        return known
    if held_at(facts, payment_ref) in (None, account.id):
        return replace(known, reserved_minor=known.reserved_minor - amount)
    return replace(known, elsewhere_minor=known.elsewhere_minor - amount)


def _too_much(
    order: OrderSnapshot, payment: OrderPayment, external: int, known: BalanceFacts, amount: Money
) -> CannotRefund | None:
    left = Money(max(0, payment.captured_minor - external - known.reserved_minor - known.refunded_minor),
                 order.currency)
    if amount.minor <= left.minor:
        return None
    others = [p for p in order.payments if p.payment_ref != payment.payment_ref]
    if others and amount.minor <= sum(p.captured_minor for p in order.payments):
        parts = " and ".join(f"{Money(p.captured_minor, order.currency)} of {p.payment_ref}" for p in order.payments)
        return CannotRefund(
            "spans_payments",
            f"{amount} is more than what remains of {payment.payment_ref} ({left}). One request refunds one payment:"
            f" ask for it in parts, at most {parts}.",
        )
    return CannotRefund("remaining_too_small", f"Only {left} remains to be refunded of {payment.payment_ref}.")

