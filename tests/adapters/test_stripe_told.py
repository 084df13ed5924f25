"""Statements and notices as they really come from a server: the sandbox's faults F34 and F36 to F49 at the adapter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import (
    Deadline,
    Inconclusive,
    LineKind,
    Notice,
    NoticeRefused,
    PaymentSnapshot,
    ProviderRefund,
    RefundStatus,
    Statement,
)
from runtime_app.money import Money
from tests.adapters.providers import SECRET, Refunding, StripeAtSandbox, made
from tests.adapters.receiving import Letter, receiving
from tests.sandbox_process import wait_until


def today() -> date:
    return datetime.now(UTC).date()


def read(stripe: StripeAtSandbox, day: date | None = None, **changes: Any) -> Statement:
    told = stripe.payments.read_statement(
        replace(stripe.account, **changes), day=day or today(), deadline=Deadline.after(20))
    assert isinstance(told, Statement), told
    return told


def refunded(stripe: StripeAtSandbox, minor: int = 2500, currency: str = "USD") -> ProviderRefund:
    return made(stripe, Refunding(stripe, stripe.open_payment(10_000, currency), Money(minor, currency)))


def lines(told: Statement, refund: ProviderRefund) -> list[tuple[LineKind, int]]:
    return [(line.kind, line.amount.minor) for line in told.lines if line.provider_ref == refund.ref]


def test_a_missing_line_is_not_there_and_nothing_says_so(stripe: StripeAtSandbox) -> None:
    """F42: only the comparison with our operations can tell."""
    refund = refunded(stripe)
    stripe.sandbox.fault("F42", match={"payment_ref": refund.payment_ref})
    assert (lines(read(stripe), refund), read(stripe).trouble) == ([], "")
    assert lines(read(stripe), refund) == [(LineKind.REFUND, -2500)]


def test_a_refund_that_nobody_made_is_a_line_without_an_operation(stripe: StripeAtSandbox) -> None:
    """F43."""
    payment = stripe.open_payment()
    stripe.sandbox.fault("F43", amount_minor=777, payment_ref=payment)
    ghost, = [line for line in read(stripe).lines if line.payment_ref == payment]
    assert (ghost.kind, ghost.amount, ghost.our_ref) == (LineKind.REFUND, Money(-777, "USD"), None)


def test_a_line_told_twice_is_no_trouble(stripe: StripeAtSandbox) -> None:
    """F44: both are told, and they are equal."""
    refund = refunded(stripe)
    stripe.sandbox.fault("F44", match={"payment_ref": refund.payment_ref})
    told = read(stripe)
    twice = [line for line in told.lines if line.provider_ref == refund.ref]
    assert len(twice) == 2 and twice[0] == twice[1] and told.trouble == ""


@pytest.mark.parametrize(("code", "more"), [("F45", {}), ("F48", {"seconds": 1})])
def test_a_line_of_tomorrow_is_in_tomorrows_statement_only(
    stripe: StripeAtSandbox, code: str, more: dict[str, Any]
) -> None:
    refund = refunded(stripe)
    stripe.sandbox.fault(code, match={"payment_ref": refund.payment_ref}, **more)
    read(stripe)
    days = {day: len(lines(read(stripe, day), refund)) for day in (today(), today() + timedelta(1))}
    assert days == {today(): 0, today() + timedelta(1): 1}
    assert read(stripe, today() + timedelta(1)).trouble == ""


@pytest.mark.parametrize("by", [1, -1])
def test_a_total_that_does_not_add_up_is_trouble(stripe: StripeAtSandbox, by: int) -> None:
    """F46: the day cannot close."""
    refunded(stripe)
    stripe.sandbox.fault("F46", by=by)
    told = read(stripe)
    assert "counts" in told.trouble and told.seen is not None and not told.seen.complete
    assert read(stripe).trouble == ""


def test_a_day_that_is_not_available_says_nothing(stripe: StripeAtSandbox) -> None:
    """F47."""
    refunded(stripe)
    for status in (404, 409, 503):
        stripe.sandbox.fault("F47", how="unavailable", status=status)
        told = stripe.payments.read_statement(stripe.account, day=today(), deadline=Deadline.after(20))
        assert isinstance(told, Inconclusive)
    stripe.sandbox.fault("F47")
    assert (read(stripe).lines, read(stripe).lines != ()) == ((), True)


@pytest.mark.parametrize(("code", "more"), [("F27", {}), ("F2", {}), ("F6", {}), ("F7", {}), ("F8", {}), ("F12", {})])
def test_a_statement_that_is_not_answered_says_nothing(
    stripe: StripeAtSandbox, code: str, more: dict[str, Any]
) -> None:
    stripe.sandbox.fault(code, on="statement", **more)
    told = stripe.payments.read_statement(stripe.account, day=today(), deadline=Deadline.after(20))
    assert isinstance(told, Inconclusive)


def test_a_day_of_many_lines_is_read_over_its_pages(stripe: StripeAtSandbox) -> None:
    payment = stripe.open_payment(100_000)
    for _ in range(205):
        stripe.refund_outside(payment, 1)
    told = read(stripe)
    assert len([line for line in told.lines if line.payment_ref == payment]) == 205
    assert told.seen is not None and told.seen.pages >= 3 and told.trouble == ""
    assert told.count_told == len(told.lines) == len({line.ref for line in told.lines})
    same = read(stripe, settings={"created_filter": "off"})
    assert (same.lines, same.count_told) == (told.lines, None)


def test_a_page_that_fails_in_the_middle_leaves_the_day_incomplete(stripe: StripeAtSandbox) -> None:
    """The second page is lost, and what was read of the first stays as evidence."""
    payment = stripe.open_payment(100_000)
    for _ in range(105):
        stripe.refund_outside(payment, 1)
    asked = 0
    get = StripePayments._get

    def failing(self: StripePayments, *args: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 2:
            stripe.sandbox.fault("F27", on="statement")
        return get(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StripePayments, "_get", failing)
        told = read(stripe)
    assert "Page 2 was not read: 500" in told.trouble and len(told.lines) == 100


def test_every_currency_keeps_its_amount_in_a_statement(stripe: StripeAtSandbox) -> None:
    """C41."""
    for currency, minor in (("ISK", 25), ("MGA", 2500), ("KWD", 1230), ("JPY", 77), ("HUF", 1234)):
        refund = refunded(stripe, minor, currency)
        line, = [line for line in read(stripe).lines if line.provider_ref == refund.ref]
        assert line.amount == Money(-minor, currency)


def test_a_dispute_is_told_of_the_payment_and_in_the_statement(stripe: StripeAtSandbox) -> None:
    """F34."""
    payment = stripe.open_payment()
    stripe.sandbox.fault("F34", match={"payment_ref": payment}, amount_minor=4000)
    told = stripe.payments.retrieve_payment(stripe.account, payment_ref=payment, deadline=Deadline.after(20))
    assert isinstance(told, PaymentSnapshot) and told.disputed
    assert [(line.kind, line.amount.minor) for line in read(stripe).lines if line.payment_ref == payment] == [
        (LineKind.DISPUTE, -4000)]


def test_a_live_payment_at_a_test_account_is_told(stripe: StripeAtSandbox) -> None:
    """F49: the caller decides."""
    payment = stripe.open_payment()
    for expected in (True, False):
        if expected:
            stripe.sandbox.fault("F49", what="livemode", match={"payment_ref": payment})
        told = stripe.payments.retrieve_payment(stripe.account, payment_ref=payment, deadline=Deadline.after(20))
        assert isinstance(told, PaymentSnapshot) and told.live is expected


@pytest.fixture
def notices(stripe: StripeAtSandbox) -> Iterator[list[Letter]]:
    with receiving() as (url, came):
        answer = stripe.sandbox.control("POST", "/accounts", {
            "tenant": "amber", "api_key": stripe.account.api_key, "notice_url": url, "notice_secret": SECRET})
        assert answer.status_code < 300, answer.text
        yield came


def parse(stripe: StripeAtSandbox, letter: Letter) -> Notice | NoticeRefused:
    return stripe.payments.parse_notice(
        stripe.account, headers=letter[0], body=letter[1], now=datetime.now(UTC))


def test_the_notices_of_a_refund_are_read(stripe: StripeAtSandbox, notices: list[Letter]) -> None:
    """C06: all of them name the payment, and those of the refund name it and its operation."""
    refund = refunded(stripe)
    stripe.settle(refund.ref, RefundStatus.FAILED)
    wait_until(lambda: any(b'"refund.failed"' in body for _, body in notices))
    told = [parse(stripe, letter) for letter in list(notices)]
    assert all(isinstance(one, Notice) for one in told), told
    read = [one for one in told if isinstance(one, Notice)]
    assert {one.payment_ref for one in read} == {refund.payment_ref}
    assert {"refund.created", "refund.failed"} <= {one.kind for one in read}
    of_refund = [one for one in read if one.kind.startswith("refund.")]
    assert {(one.refund_ref, one.operation_ref) for one in of_refund} == {(refund.ref, refund.operation_ref)}
    assert next(one.says for one in of_refund if one.kind == "refund.failed") == "failed"
    assert all(one.live is False and one.occurred_at is not None for one in read)


@pytest.mark.parametrize("how", ["bad_signature", "old_timestamp", "no_header", "other_secret"])
def test_a_badly_signed_notice_is_refused(stripe: StripeAtSandbox, notices: list[Letter], how: str) -> None:
    """F40."""
    payment = stripe.open_payment()
    stripe.sandbox.fault("F40", match={"payment_ref": payment}, how=how)
    made(stripe, Refunding(stripe, payment, Money(5, "USD")))
    wait_until(lambda: notices)
    assert all(isinstance(parse(stripe, letter), NoticeRefused) for letter in list(notices))


def test_a_notice_about_nothing_of_ours_is_still_a_notice(stripe: StripeAtSandbox, notices: list[Letter]) -> None:
    """F41: rightly signed, so it is read; that nobody knows the operation is for the caller."""
    payment = stripe.open_payment()
    stripe.sandbox.fault("F41", match={"payment_ref": payment}, operation_id="nobody-knows")
    made(stripe, Refunding(stripe, payment, Money(5, "USD")))
    wait_until(lambda: any(b"nobody-knows" in body for _, body in notices))
    told = [parse(stripe, letter) for letter in notices if b"nobody-knows" in letter[1]]
    assert all(isinstance(one, Notice) and one.operation_ref == "nobody-knows" for one in told)
