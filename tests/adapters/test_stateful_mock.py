"""The same adapter against `stripe-stateful-mock`, a server that none of us wrote: idempotency and over-refunds.

It knows charges only, so the payments here are charges. Skipped, with the reason, where npm cannot install it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from runtime_app.adapters.payments.stripe import API_VERSION
from runtime_app.adapters.payments.stripe_client import StripeCalls
from runtime_app.adapters.payments.stripe_evidence import judge_create, read_answer
from runtime_app.adapters.payments.types import (
    Absent,
    Deadline,
    Declined,
    Found,
    Inconclusive,
    KeyConflict,
    NoSuchRefund,
    NotSent,
    OutcomeUnknown,
    PaymentSnapshot,
    RefundPage,
    RefundStatus,
    Succeeded,
    Throttled,
)
from runtime_app.money import Money
from tests.adapters.providers import Refunding, only
from tests.adapters.stateful_mock import AtStatefulMock, CannotInstall, running_stateful_mock


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AtStatefulMock]:
    try:
        with running_stateful_mock(tmp_path_factory.mktemp("stateful")) as at:
            yield at
    except CannotInstall as reason:
        pytest.skip(f"stripe-stateful-mock is not to be had: {reason}")


def refunding(at: AtStatefulMock, minor: int = 2500, payment: str | None = None, captured: int = 10000) -> Refunding:
    return Refunding(at, payment or at.open_payment(captured), Money(minor, "USD"))


def snapshot(at: AtStatefulMock, payment: str) -> Any:
    return at.payments.retrieve_payment(at.account, payment_ref=payment, deadline=Deadline.after(20))


def test_a_charge_is_refunded_in_parts_and_each_is_found(mock: AtStatefulMock) -> None:
    payment = mock.open_payment()
    for minor in (700, 300):
        refund = refunding(mock, minor, payment)
        made = refund.send()
        assert isinstance(made, Succeeded), made
        assert (made.refund.amount, made.refund.payment_ref, made.refund.status) == (
            Money(minor, "USD"), payment, RefundStatus.SUCCEEDED)
        assert only(refund.find()) == made.refund
    told = snapshot(mock, payment)
    assert isinstance(told, PaymentSnapshot)
    assert (told.captured.minor, told.refunded.minor, told.live, told.disputed) == (10000, 1000, False, False)


def test_the_same_request_is_replayed_and_moves_money_once(mock: AtStatefulMock) -> None:
    refund = refunding(mock)
    first, second = refund.send(), refund.send(resend=True)
    assert isinstance(first, Succeeded) and isinstance(second, Succeeded)
    assert second.refund == first.refund
    assert (first.seen.replayed, second.seen.replayed) == (False, True)
    assert snapshot(mock, refund.payment_ref).refunded.minor == 2500


def test_one_key_with_another_body_is_a_conflict(mock: AtStatefulMock) -> None:
    refund = refunding(mock)
    assert isinstance(refund.send(), Succeeded)
    other = refunding(mock, 99, refund.payment_ref)
    assert isinstance(other.send(key=str(refund.operation_id)), KeyConflict)
    assert snapshot(mock, refund.payment_ref).refunded.minor == 2500


def test_too_much_is_declined_on_the_first_send(mock: AtStatefulMock) -> None:
    """money.md 2: it has no code of its own, only the sentence."""
    result = refunding(mock, 10001).send()
    assert isinstance(result, Declined) and (result.code, result.refund) == ("amount_too_large", None)


def test_a_refusal_of_a_resend_proves_nothing(mock: AtStatefulMock) -> None:
    """money.md 2, traps: also where the key's own refusal is replayed."""
    payment = mock.open_payment()
    assert isinstance(refunding(mock, 10000, payment).send(), Succeeded)
    late = refunding(mock, 10000, payment)
    first = late.send()
    assert isinstance(first, Declined) and first.code == "charge_already_refunded"
    again = late.send(resend=True)
    assert isinstance(again, OutcomeUnknown) and again.cause == "charge_already_refunded" and again.seen.replayed


def test_a_provider_that_forgot_the_payment_declines(mock: AtStatefulMock) -> None:
    """tok_forget: the charge was answered, and is not there afterwards."""
    payment = mock.open_payment(source="tok_forget")
    result = refunding(mock, 5, payment).send()
    assert isinstance(result, Declined) and result.code == "resource_missing"
    assert isinstance(snapshot(mock, payment), Inconclusive)


def charge(mock: AtStatefulMock, source: str, key: str) -> Any:
    """A charge with this source, sent and judged as a refund would be: its 500 and 429 are this server's own."""
    request = replace(refunding(mock).request, body=f"amount=500&currency=usd&source={source}".encode())
    seen = StripeCalls(5, 20, API_VERSION).call(
        mock.account, "post", "/v1/charges", {}, deadline=Deadline.after(20), frozen=request.body, idempotency_key=key)
    return judge_create(read_answer(seen, "POST /v1/charges", API_VERSION), request, resend=False)


def test_a_servers_500_is_unknown_and_burns_the_key(mock: AtStatefulMock) -> None:
    """tok_500, money.md 3.3 row 13: the first 500 is stored under the key and replayed."""
    key = str(uuid4())
    first, second = charge(mock, "tok_500", key), charge(mock, "tok_500", key)
    assert isinstance(first, OutcomeUnknown) and not first.key_burned
    assert isinstance(second, OutcomeUnknown) and second.key_burned


def test_a_servers_429_was_not_looked_at_and_is_not_stored(mock: AtStatefulMock) -> None:
    """tok_429: it comes before the key's memory, so that the same key is looked at anew."""
    key = str(uuid4())
    for _ in range(2):
        throttled = charge(mock, "tok_429", key)
        assert isinstance(throttled, Throttled) and not throttled.seen.replayed


def test_a_wrong_key_is_turned_away_at_the_door(mock: AtStatefulMock) -> None:
    refund = refunding(mock)
    locked = replace(mock.account, api_key="sk_live_not_here")
    result = mock.payments.create_refund(
        locked, refund.request, idempotency_key="k", resend=False, deadline=Deadline.after(20))
    assert isinstance(result, NotSent)


def test_absence_is_proved_by_all_refunds_and_the_charges_total(mock: AtStatefulMock) -> None:
    """Over two pages; the server has no events, and that changes nothing."""
    payment = mock.open_payment(100_000)
    for _ in range(103):
        mock.post("/v1/refunds", {"charge": payment, "amount": "1"})
    absent = refunding(mock, 1, payment).find()
    assert isinstance(absent, Absent)
    assert (absent.seen.pages, len(absent.lookalikes)) == (2, 103)
    ours = refunding(mock, 1, payment)
    assert isinstance(ours.send(), Succeeded)
    assert only(ours.find()).operation_ref == str(ours.operation_id)


def test_lists_and_single_refunds_are_read(mock: AtStatefulMock) -> None:
    made = refunding(mock).send()
    assert isinstance(made, Succeeded)
    told = mock.payments.retrieve_refund(mock.account, refund_ref=made.refund.ref, deadline=Deadline.after(20))
    assert isinstance(told, Found) and told.refunds == (made.refund,)
    nowhere = mock.payments.retrieve_refund(mock.account, refund_ref="re_nowhere", deadline=Deadline.after(20))
    assert isinstance(nowhere, NoSuchRefund)
    swept, cursor = list[str](), None
    while True:
        page = mock.payments.list_refunds(
            mock.account, payment_ref=None, since=None, cursor=cursor, deadline=Deadline.after(20))
        assert isinstance(page, RefundPage)
        swept += [refund.ref for refund in page.refunds]
        if (cursor := page.next_cursor) is None:
            break
    assert swept.count(made.refund.ref) == 1 and len(set(swept)) == len(swept)


def test_a_disputed_charge_says_so_and_is_not_refunded(mock: AtStatefulMock) -> None:
    """F34."""
    payment = mock.open_payment(source="tok_createDispute")
    assert snapshot(mock, payment).disputed
    result = refunding(mock, 5, payment).send()
    assert isinstance(result, Declined) and result.code == "charge_disputed"


def test_what_it_does_not_have_proves_nothing(mock: AtStatefulMock) -> None:
    """No payment intents, no balance transactions, no cancel: each a 404 of its own shape."""
    deadline = Deadline.after(20)
    assert isinstance(snapshot(mock, "pi_1"), Inconclusive)
    assert isinstance(
        mock.payments.read_statement(mock.account, day=datetime.now(UTC).date(), deadline=deadline), Inconclusive)
    made = refunding(mock).send()
    assert isinstance(made, Succeeded)
    cancelled = mock.payments.cancel_refund(
        mock.account, refund_ref=made.refund.ref, idempotency_key="c", deadline=deadline)
    assert isinstance(cancelled, Declined) and cancelled.refund is None
