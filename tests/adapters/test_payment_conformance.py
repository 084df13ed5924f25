"""What every payment provider adapter must do; the real adapter and the one in memory are held to the same."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from runtime_app.adapters.payments.types import (
    Absent,
    Capabilities,
    Deadline,
    Declined,
    Found,
    Inconclusive,
    KeyConflict,
    KeyInProgress,
    Mismatch,
    NotSent,
    OutcomeUnknown,
    PaymentSnapshot,
    Pending,
    RefundStatus,
    Succeeded,
    Throttled,
)
from runtime_app.money import Money
from tests.adapters.providers import Provider, Refunding, made, needs, only

REPLAYS = needs(lambda can: can.replays == "all")
KNOWS_PAYMENTS = needs(lambda can: can.reads_payments)


def refunding(provider: Provider, amount: int = 2500, captured: int = 10000) -> Refunding:
    return another(provider, provider.open_payment(captured), amount)


def another(provider: Provider, payment_ref: str, amount: int) -> Refunding:
    return Refunding(provider, payment_ref, Money(amount, provider.currency))


def can(provider: Provider) -> Capabilities:
    return provider.payments.capabilities(provider.account)


def test_a_refund_is_accepted_and_found_by_its_operation(provider: Provider) -> None:
    refund = refunding(provider)
    result = refund.send()
    assert isinstance(result, Succeeded | Pending)
    assert (result.refund.amount, result.refund.payment_ref) == (refund.amount, refund.payment_ref)
    found = only(refund.find())
    assert found.operation_ref == str(refund.operation_id)
    assert (found.ref, found.amount, found.payment_ref, found.status) == (
        result.refund.ref, refund.amount, refund.payment_ref, result.refund.status)
    assert provider.moved(refund.payment_ref) == [(2500, str(refund.operation_id))]


@REPLAYS
def test_the_same_request_twice_moves_money_once(provider: Provider) -> None:
    """M02: a retry keeps the one operation."""
    refund = refunding(provider)
    first, second = refund.send(), refund.send(resend=True)
    assert isinstance(first, Succeeded) and isinstance(second, Succeeded)
    assert first.refund == second.refund
    assert (first.seen.replayed, second.seen.replayed) == (False, True)
    assert len(provider.moved(refund.payment_ref)) == 1


@needs(lambda can: can.compares_body)
def test_one_key_with_another_body_is_a_conflict(provider: Provider) -> None:
    refund = refunding(provider)
    other = another(provider, refund.payment_ref, 99)
    refund.send()
    assert isinstance(other.send(key=str(refund.operation_id)), KeyConflict)
    assert len(provider.moved(refund.payment_ref)) == 1


def test_two_equal_partial_refunds_are_two(provider: Provider) -> None:
    """C13: a key is the operation's, never the amount's."""
    first = refunding(provider, 1500, 6000)
    second = another(provider, first.payment_ref, 1500)
    made(provider, first)
    made(provider, second)
    assert provider.moved(first.payment_ref) == [(1500, str(first.operation_id)), (1500, str(second.operation_id))]


@KNOWS_PAYMENTS
def test_too_much_is_declined_on_the_first_send(provider: Provider) -> None:
    refund = refunding(provider, 10001)
    result = refund.send()
    assert isinstance(result, Declined)
    assert (result.code, result.refund) == ("amount_too_large", None)
    assert provider.moved(refund.payment_ref) == []


@needs(lambda can: can.reads_payments and can.replays == "all")
def test_a_refusal_of_a_resend_proves_nothing(provider: Provider) -> None:
    """money.md 2, traps: what refuses the second send may be the success of the first."""
    spent = refunding(provider, 10000)
    spent.send()
    late = another(provider, spent.payment_ref, 10000)
    result = late.send(resend=True)
    assert isinstance(result, OutcomeUnknown)
    assert (result.stage, result.cause) == ("resend", "charge_already_refunded")


@KNOWS_PAYMENTS
def test_an_unknown_payment_is_declined(provider: Provider) -> None:
    result = another(provider, "pi_nowhere", 1).send()
    assert isinstance(result, Declined)
    assert result.code == "resource_missing"


def test_a_lost_answer_is_unknown_and_the_refund_is_found(provider: Provider) -> None:
    """C04, M23: the money moved and nobody said so."""
    refund = refunding(provider)
    provider.goes_wrong("F4", refund.payment_ref)
    result = refund.send()
    assert isinstance(result, OutcomeUnknown) and result.stage == "no_answer"
    found = only(refund.find())
    if can(provider).replays == "all":
        resent = refund.send(resend=True)
        assert isinstance(resent, Succeeded) and resent.refund == found
    assert len(provider.moved(refund.payment_ref)) == 1


def test_a_request_lost_on_its_way_is_unknown_too_and_then_absent(provider: Provider) -> None:
    refund = refunding(provider)
    provider.goes_wrong("F2", refund.payment_ref)
    assert isinstance(refund.send(), OutcomeUnknown)
    assert isinstance(refund.find(), Absent)
    assert provider.moved(refund.payment_ref) == []
    if can(provider).replays == "all":
        assert isinstance(refund.send(resend=True), Succeeded)
        assert len(provider.moved(refund.payment_ref)) == 1


@pytest.mark.parametrize(("code", "moved"), [("F10", 0), ("F11", 1)])
def test_a_server_error_is_unknown_and_burns_a_key_that_is_kept(provider: Provider, code: str, moved: int) -> None:
    """money.md 3.3 row 13, both before and after the money moved."""
    refund = refunding(provider)
    provider.goes_wrong(code, refund.payment_ref)
    first = refund.send()
    assert isinstance(first, OutcomeUnknown) and not first.key_burned
    if can(provider).replays == "all":
        second = refund.send(resend=True)
        assert isinstance(second, OutcomeUnknown) and second.key_burned
    assert len(provider.moved(refund.payment_ref)) == moved
    assert isinstance(refund.find(), Found if moved else Absent)


def test_nothing_was_sent_when_nobody_listens(provider: Provider) -> None:
    refund = refunding(provider)
    provider.goes_wrong("F1", refund.payment_ref)
    assert isinstance(refund.send(), NotSent)


def test_a_throttled_request_was_not_looked_at(provider: Provider) -> None:
    refund = refunding(provider)
    provider.goes_wrong("F12", refund.payment_ref)
    result = refund.send()
    assert isinstance(result, Throttled) and result.retry_after == 1.0
    assert provider.moved(refund.payment_ref) == []


@REPLAYS
def test_a_key_in_use_says_so(provider: Provider) -> None:
    refund = refunding(provider)
    provider.goes_wrong("F13", refund.payment_ref)
    assert isinstance(refund.send(), KeyInProgress)


def test_an_accepted_refund_is_pending_until_it_settles(provider: Provider) -> None:
    """C06: accepted is not done."""
    refund = refunding(provider)
    provider.goes_wrong("F21", refund.payment_ref)
    result = refund.send()
    assert isinstance(result, Pending) and result.refund.status is RefundStatus.PENDING
    provider.settle(result.refund.ref, RefundStatus.SUCCEEDED)
    assert only(refund.find()).status is RefundStatus.SUCCEEDED


def test_a_refund_that_failed_at_once_is_declined_and_named(provider: Provider) -> None:
    refund = refunding(provider)
    provider.goes_wrong("F21", refund.payment_ref, failed=True)
    result = refund.send()
    assert isinstance(result, Declined) and result.refund is not None
    assert only(refund.find()).status is RefundStatus.FAILED
    assert provider.moved(refund.payment_ref) == []


@needs(lambda can: RefundStatus.REQUIRES_ACTION in can.can_cancel)
def test_a_refund_that_waits_for_somebody_can_be_cancelled(provider: Provider) -> None:
    refund = refunding(provider)
    provider.goes_wrong("F22", refund.payment_ref)
    waiting = refund.send()
    assert isinstance(waiting, Pending) and waiting.refund.status is RefundStatus.REQUIRES_ACTION
    assert waiting.refund.status in can(provider).can_cancel
    result = provider.payments.cancel_refund(
        provider.account, refund_ref=waiting.refund.ref, idempotency_key="c1", deadline=Deadline.after(20)
    )
    assert isinstance(result, Declined) and result.refund is not None
    assert result.refund.status is RefundStatus.CANCELED
    assert provider.moved(refund.payment_ref) == []


def test_a_refund_that_is_done_cannot_be_cancelled(provider: Provider) -> None:
    refund = refunding(provider)
    done = made(provider, refund)
    result = provider.payments.cancel_refund(
        provider.account, refund_ref=done.ref, idempotency_key="c2", deadline=Deadline.after(20)
    )
    assert isinstance(result, Declined) and result.refund is None
    assert len(provider.moved(refund.payment_ref)) == 1


def test_a_refund_made_outside_is_never_ours(provider: Provider) -> None:
    """money.md 3.2: where refunds are listed by payment, it is told as a look-alike."""
    refund = refunding(provider)
    provider.refund_outside(refund.payment_ref, 2500)
    result = refund.find()
    assert isinstance(result, Absent)
    alike = [(refund.amount, None)] if can(provider).lookup == "by_payment" else []
    assert [(r.amount, r.operation_ref) for r in result.lookalikes] == alike


@needs(lambda can: can.lookup == "by_payment" and can.replays == "all")
def test_a_refund_that_lost_its_name_is_found_by_the_key_that_made_it(provider: Provider) -> None:
    """F31."""
    refund = refunding(provider)
    provider.goes_wrong("F31", refund.payment_ref)
    sent = refund.send()
    assert isinstance(sent, Mismatch) and sent.differs == ("operation",)
    found = only(refund.find())
    assert (found.ref, found.operation_ref) == (sent.refund.ref, str(refund.operation_id))


def test_nothing_is_sent_after_the_deadline(provider: Provider) -> None:
    """Rule 3 of architecture.md: a send has a deadline."""
    refund = refunding(provider)
    assert isinstance(refund.send(seconds=-0.001), NotSent)
    assert provider.moved(refund.payment_ref) == []


@KNOWS_PAYMENTS
def test_a_payment_tells_what_was_captured_and_refunded(provider: Provider) -> None:
    refund = refunding(provider)
    provider.goes_wrong("F21", refund.payment_ref)
    refund.send()
    seen = provider.payments.retrieve_payment(
        provider.account, payment_ref=refund.payment_ref, deadline=Deadline.after(20)
    )
    assert isinstance(seen, PaymentSnapshot)
    assert (seen.captured.minor, seen.refunded) == (10000, refund.amount)
    assert (seen.captured.currency, seen.disputed) == (provider.currency, False)
    assert seen.live is not True
    nowhere = provider.payments.retrieve_payment(
        provider.account, payment_ref="pi_nowhere", deadline=Deadline.after(20)
    )
    assert isinstance(nowhere, Inconclusive)


def test_what_was_frozen_is_the_request_as_it_was_asked_for(provider: Provider) -> None:
    """I3 of money.md: hash and bytes belong together, and hold the operation that they are for."""
    refund = refunding(provider)
    request = refund.request
    assert request.body_sha256 == hashlib.sha256(request.body).hexdigest()
    assert (request.operation_id, request.payment_ref, request.amount) == (
        refund.operation_id, refund.payment_ref, refund.amount)
    assert refund.operation_id.hex.encode() in request.body.replace(b"-", b"")
    assert refunding(provider).request.body != request.body


def test_what_is_in_order_is_not_complained_of(provider: Provider) -> None:
    assert provider.payments.check_account(provider.account) == {}
    assert provider.payments.check_destination(provider.destination) is None
    assert provider.payments.check_representable(Money(2500, provider.currency)) is None


def test_what_is_not_in_order_gets_a_sentence(provider: Provider) -> None:
    wrong = provider.payments.check_account(replace(provider.account, settings={"colour": "blue"}))
    assert wrong and all(sentence.endswith(".") for sentence in wrong.values())
    assert provider.payments.check_representable(Money(0, provider.currency))
    if can(provider).needs_destination:
        assert provider.payments.check_destination(None) and provider.payments.check_destination("nowhere")
