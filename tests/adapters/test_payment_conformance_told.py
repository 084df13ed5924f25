"""What every payment provider adapter must tell when it is asked for more than one refund of ours, or tells by itself:
single refunds, lists, statements and notices."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import cast

import pytest

from runtime_app.adapters.payments.types import (
    BadStatement,
    Deadline,
    Found,
    Inconclusive,
    LineKind,
    NoSuchRefund,
    Notice,
    NoticeRefused,
    Pending,
    ProviderRefund,
    RefundPage,
    RefundStatus,
    Statement,
    StatementLine,
    Succeeded,
)
from runtime_app.money import Money
from tests.adapters.providers import OLD_SECRET, SECRET, Provider, Refunding, TellsNotices, made, needs
from tests.adapters.test_payment_conformance import another, refunding

SWEEPS = needs(lambda can: can.sweeps)
STATEMENTS = needs(lambda can: can.statement != "none")
NOTICES = needs(lambda can: can.notices)
NOW = datetime(2030, 3, 1, 12, tzinfo=UTC)


def soon() -> Deadline:
    return Deadline.after(20)


def listed(provider: Provider, payment_ref: str | None, since: datetime | None = None) -> list[list[ProviderRefund]]:
    """All pages, as their refunds."""
    pages, cursor = [], None
    while True:
        page = provider.payments.list_refunds(
            provider.account, payment_ref=payment_ref, since=since, cursor=cursor, deadline=soon())
        assert isinstance(page, RefundPage), page
        pages.append(list(page.refunds))
        if (cursor := page.next_cursor) is None:
            return pages


def test_one_refund_is_read_by_the_providers_reference(provider: Provider) -> None:
    refund = refunding(provider)
    done = made(provider, refund)
    told = provider.payments.retrieve_refund(provider.account, refund_ref=done.ref, deadline=soon())
    assert isinstance(told, Found)
    assert [(r.ref, r.amount, r.operation_ref, r.status) for r in told.refunds] == [
        (done.ref, refund.amount, str(refund.operation_id), RefundStatus.SUCCEEDED)]


def test_a_reference_that_the_provider_does_not_know_is_told_so(provider: Provider) -> None:
    told = provider.payments.retrieve_refund(provider.account, refund_ref="re_nowhere", deadline=soon())
    assert isinstance(told, NoSuchRefund)


def test_nothing_more_is_asked_after_the_deadline(provider: Provider) -> None:
    """Rule 3 of architecture.md."""
    late = Deadline.after(-0.001)
    payments, account = provider.payments, provider.account
    assert isinstance(payments.retrieve_refund(account, refund_ref="re_1", deadline=late), Inconclusive)
    assert isinstance(
        payments.list_refunds(account, payment_ref=None, since=None, cursor=None, deadline=late), Inconclusive)
    assert isinstance(payments.read_statement(account, day=date(2030, 1, 1), deadline=late), Inconclusive)


@SWEEPS
def test_the_refunds_of_a_payment_are_listed_newest_first(provider: Provider) -> None:
    payment = provider.open_payment()
    ours = [made(provider, another(provider, payment, minor)) for minor in (1, 2, 3)]
    made(provider, refunding(provider))
    assert listed(provider, payment) == [list(reversed(ours))]


@SWEEPS
def test_a_list_goes_over_pages_without_losing_or_repeating_one(provider: Provider) -> None:
    payment = provider.open_payment()
    first = made(provider, another(provider, payment, 7))
    for _ in range(104):
        provider.refund_outside(payment, 1)
    pages = listed(provider, payment)
    refs = [refund.ref for page in pages for refund in page]
    assert [len(page) for page in pages] == [100, 5]
    assert len(set(refs)) == 105 and refs[-1] == first.ref


@SWEEPS
def test_a_sweep_finds_refunds_of_many_payments_by_their_operations(provider: Provider) -> None:
    """money.md 3.4: one list instead of a look-up for each operation."""
    ours = [made(provider, refunding(provider, amount)) for amount in (11, 12, 13)]
    swept = [refund for page in listed(provider, None) for refund in page]
    assert [refund for refund in swept if refund.operation_ref in {r.operation_ref for r in ours}] == ours[::-1]


@SWEEPS
def test_a_list_may_end_where_its_time_begins(provider: Provider) -> None:
    payment = provider.open_payment()
    first = made(provider, another(provider, payment, 7))
    assert first.created_at is not None
    assert listed(provider, payment, first.created_at) == [[first]]
    assert listed(provider, payment, first.created_at + timedelta(seconds=1)) == [[]]


@needs(lambda can: not can.sweeps)
def test_a_list_that_cannot_be_had_proves_nothing(provider: Provider) -> None:
    assert isinstance(provider.payments.list_refunds(
        provider.account, payment_ref=None, since=None, cursor=None, deadline=soon()), Inconclusive)


@needs(lambda can: not can.reads_payments)
def test_a_payment_that_cannot_be_read_proves_nothing(provider: Provider) -> None:
    assert isinstance(
        provider.payments.retrieve_payment(provider.account, payment_ref="pi_1", deadline=soon()), Inconclusive)


def told_of(provider: Provider, refund_ref: str) -> list[Statement]:
    """The statements of the days on which something of this refund was booked."""
    told = [provider.payments.read_statement(provider.account, day=day, deadline=soon())
            for day in provider.booked_on(refund_ref)]
    assert told and all(isinstance(one, Statement) for one in told), told
    return cast(list[Statement], told)


def about(statements: list[Statement], refund: Refunding) -> list[StatementLine]:
    return [line for told in statements for line in told.lines if line.our_ref == str(refund.operation_id)]


@STATEMENTS
def test_a_statement_has_a_line_for_a_refund(provider: Provider) -> None:
    refund = refunding(provider)
    done = made(provider, refund)
    told = told_of(provider, done.ref)[-1]
    assert told.trouble == "" and told.day == provider.booked_on(done.ref)[-1]
    line, = about([told], refund)
    assert (line.kind, line.amount) == (LineKind.REFUND, Money(-2500, provider.currency))
    assert len({line.ref for line in told.lines}) == len(told.lines)
    if told.source == "list":
        assert (line.provider_ref, line.payment_ref) == (done.ref, refund.payment_ref)
        assert told.count_told == len(told.lines)


@STATEMENTS
def test_a_statement_tells_money_that_came_back(provider: Provider) -> None:
    """money.md 3.3 row 24: it went and it returned, and both are lines."""
    refund = refunding(provider)
    sent = refund.send()
    assert isinstance(sent, Succeeded | Pending)
    provider.settle(sent.refund.ref, RefundStatus.FAILED)
    lines = about(told_of(provider, sent.refund.ref), refund)
    assert {line.kind: line.amount.minor for line in lines} == {
        LineKind.REFUND: -2500, LineKind.REFUND_FAILED: 2500}
    assert len(lines) == 2


@needs(lambda can: can.statement == "list")
def test_a_statement_has_what_left_the_account_and_nothing_else(provider: Provider) -> None:
    """What waits for somebody has not left, what failed at once never did; what is on its way has, and only once."""
    def lines(refund: Refunding) -> list[LineKind]:
        today = datetime.now(UTC).date()
        told = provider.payments.read_statement(provider.account, day=today, deadline=soon())
        assert isinstance(told, Statement)
        return [line.kind for line in about([told], refund)]

    failed, waiting, pending = refunding(provider), refunding(provider), refunding(provider)
    provider.goes_wrong("F21", failed.payment_ref, failed=True)
    failed.send()
    provider.goes_wrong("F22", waiting.payment_ref)
    waiting.send()
    provider.goes_wrong("F21", pending.payment_ref)
    sent = pending.send()
    assert isinstance(sent, Pending)
    assert [lines(refund) for refund in (failed, waiting, pending)] == [[], [], [LineKind.REFUND]]
    provider.settle(sent.refund.ref, RefundStatus.SUCCEEDED)
    assert lines(pending) == [LineKind.REFUND]


@STATEMENTS
def test_a_day_that_is_read_twice_says_the_same(provider: Provider) -> None:
    done = made(provider, refunding(provider))
    first, second = told_of(provider, done.ref)[-1], told_of(provider, done.ref)[-1]
    assert (first.sha256, first.lines) == (second.sha256, second.lines)


@needs(lambda can: can.statement == "list")
def test_a_day_is_the_accounts_own_and_not_ours(provider: Provider) -> None:
    """F48: fourteen hours before and after UTC, each line is in exactly one day."""
    done = made(provider, refunding(provider))
    assert done.created_at is not None
    for zone, hours in (("Pacific/Kiritimati", 14), ("Pacific/Pago_Pago", -11), ("UTC", 0)):
        account = replace(provider.account, time_zone=zone)
        theirs = (done.created_at + timedelta(hours=hours)).date()
        for day, there in ((theirs, 1), (theirs - timedelta(1), 0), (theirs + timedelta(1), 0)):
            told = provider.payments.read_statement(account, day=day, deadline=soon())
            assert isinstance(told, Statement) and told.trouble == ""
            assert sum(line.provider_ref == done.ref for line in told.lines) == there, (zone, day)


@needs(lambda can: can.statement == "list")
def test_a_day_without_business_is_a_statement_without_lines(provider: Provider) -> None:
    told = provider.payments.read_statement(provider.account, day=date(2001, 1, 1), deadline=soon())
    assert isinstance(told, Statement) and (told.lines, told.trouble, told.count_told) == ((), "", 0)


@needs(lambda can: can.statement == "list")
def test_an_account_without_a_time_zone_has_no_days(provider: Provider) -> None:
    account = replace(provider.account, time_zone="Nowhere/At_All")
    told = provider.payments.read_statement(account, day=date(2030, 1, 1), deadline=soon())
    assert isinstance(told, BadStatement) and "Nowhere/At_All" in told.why


@pytest.mark.parametrize("raw", [
    b"", b"\xff\x00", b"{}", b"<a/>", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
], ids=str)
def test_a_file_that_is_no_statement_is_refused_with_a_sentence(provider: Provider, raw: bytes) -> None:
    told = provider.payments.parse_statement(provider.account, raw)
    assert isinstance(told, BadStatement) and told.why.endswith(".")


def notice(
    provider: Provider, *, at: datetime = NOW, secret: str = SECRET
) -> tuple[ProviderRefund, dict[str, str], bytes]:
    done = made(provider, refunding(provider))
    headers, body = cast(TellsNotices, provider).notice(done, at=at, secret=secret)
    return done, dict(headers), body


def parsed(provider: Provider, headers: dict[str, str], body: bytes, now: datetime = NOW) -> Notice | NoticeRefused:
    return provider.payments.parse_notice(provider.account, headers=headers, body=body, now=now)


@NOTICES
@pytest.mark.parametrize("secret", [SECRET, OLD_SECRET])
def test_a_notice_signed_with_any_of_the_accounts_secrets_is_read(provider: Provider, secret: str) -> None:
    """C06: it names the refund, and what it says of it is for the record only."""
    done, headers, body = notice(provider, secret=secret)
    told = parsed(provider, headers, body)
    assert isinstance(told, Notice), told
    assert (told.refund_ref, told.operation_ref, told.payment_ref, told.says) == (
        done.ref, done.operation_ref, done.payment_ref, "succeeded")
    assert told.event_id and told.kind == "refund.updated" and told.live is False
    assert told.occurred_at == NOW


@NOTICES
def test_the_name_of_the_signatures_header_may_be_written_in_any_way(provider: Provider) -> None:
    _, headers, body = notice(provider)
    for write in (str.upper, str.lower):
        assert isinstance(parsed(provider, {write(name): text for name, text in headers.items()}, body), Notice)


@NOTICES
def test_a_forged_notice_is_refused(provider: Provider) -> None:
    """C08, F40: another secret, another body, another or no signature. An account without a secret trusts nobody."""
    _, headers, body = notice(provider)
    _, forged, forged_body = notice(provider, secret="whsec_somebody_else")
    (name, text), = headers.items()
    bad = [(forged, forged_body), (headers, body + b" "), (headers, body.replace(b"succeeded", b"failed")), ({}, body),
           ({name: ""}, body), ({name: text[:-1] + ("0" if text[-1] != "0" else "1")}, body), ({name: "t=1"}, body),
           ({name: "ü" + text}, body), (forged, body)]
    for given, content in bad:
        refused = parsed(provider, given, content)
        assert isinstance(refused, NoticeRefused), (given, content)
        assert refused.why.endswith(".") and SECRET not in refused.why
    nobody = replace(provider.account, notice_secrets=())
    assert isinstance(provider.payments.parse_notice(nobody, headers=headers, body=body, now=NOW), NoticeRefused)


@NOTICES
@pytest.mark.parametrize(("seconds", "good"), [(0, True), (299, True), (-299, True), (301, False), (-301, False),
                                               (10**7, False)])
def test_a_notice_is_good_for_five_minutes_by_the_products_clock(
    provider: Provider, seconds: int, good: bool
) -> None:
    """F40: a replay of an old one is refused, and so is one from the future."""
    _, headers, body = notice(provider)
    told = parsed(provider, headers, body, NOW + timedelta(seconds=seconds))
    assert isinstance(told, Notice) == good


@NOTICES
def test_a_notice_of_five_megabytes_is_refused(provider: Provider) -> None:
    _, headers, body = notice(provider)
    refused = parsed(provider, headers, body + b" " * 5_000_000)
    assert isinstance(refused, NoticeRefused) and "large" in refused.why


@needs(lambda can: not can.notices)
def test_who_sends_no_notices_is_believed_none(provider: Provider) -> None:
    assert isinstance(parsed(provider, {"Stripe-Signature": "t=1,v1=00"}, b"{}"), NoticeRefused)
