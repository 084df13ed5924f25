"""Stripe's notices: the SDK's signature over the raw body, the product's clock, and hostile contents."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from stripe import WebhookSignature

from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.stripe_notice import BODY_MOST
from runtime_app.adapters.payments.types import Notice, NoticeRefused, ProviderAccount

SECRET = "whsec_main"
ACCOUNT = ProviderAccount("a", "stripe", "sk_test_x", notice_secrets=(SECRET,))
NOW = datetime(2030, 3, 1, 12, tzinfo=UTC)
STAMP = int(NOW.timestamp())
REFUND: dict[str, Any] = {
    "id": "re_1", "object": "refund", "payment_intent": "pi_1", "charge": "ch_1", "status": "pending",
    "metadata": {"operation_id": "op-1"},
}
EVENT: dict[str, Any] = {
    "id": "evt_1", "object": "event", "type": "refund.updated", "created": STAMP - 5, "livemode": False,
    "data": {"object": REFUND},
}


def signed(body: bytes, *, at: int = STAMP, secret: str = SECRET) -> str:
    return str(WebhookSignature.generate_signature_header(body.decode(), secret, at))


def parse(body: bytes, header: str | None = None, account: ProviderAccount = ACCOUNT) -> Notice | NoticeRefused:
    headers = {"Stripe-Signature": signed(body) if header is None else header}
    payments = StripePayments(connect_timeout=1, read_timeout=1)
    return payments.parse_notice(account, headers=headers, body=body, now=NOW)


def told(event: Any) -> Notice | NoticeRefused:
    return parse(event if isinstance(event, bytes) else json.dumps(event).encode())


def read(**changes: Any) -> Notice:
    notice = told(EVENT | changes)
    assert isinstance(notice, Notice), notice
    return notice


@pytest.mark.parametrize("kind", ["refund.created", "refund.updated", "refund.failed", "charge.refund.updated"])
def test_a_notice_of_a_refund_names_it(kind: str) -> None:
    assert read(type=kind) == Notice(
        "evt_1", kind, "re_1", "op-1", "pi_1", "pending", NOW - timedelta(seconds=5), live=False)


def test_a_notice_of_a_charge_names_its_payment_and_its_newest_refund() -> None:
    charge = {"id": "ch_1", "object": "charge", "payment_intent": "pi_1", "refunds": {"data": [REFUND]}}
    assert read(type="charge.refunded", data={"object": charge}).refund_ref == "re_1"
    bare = read(type="charge.refunded", data={"object": {"id": "ch_1", "object": "charge", "payment_intent": None}})
    assert (bare.refund_ref, bare.operation_ref, bare.payment_ref, bare.says) == (None, None, "ch_1", "")
    assert read(type="charge.refunded").refund_ref == "re_1"


def test_a_notice_of_something_else_is_known_by_its_kind_only() -> None:
    """It is stored and answered, and there is nothing to ask the provider for."""
    assert read(type="payout.paid", livemode=True) == Notice(
        "evt_1", "payout.paid", occurred_at=NOW - timedelta(seconds=5), live=True)


@pytest.mark.parametrize("data", [
    None, [], {}, {"object": None}, {"object": "re_1"}, {"object": {"id": 5}},
    {"object": {"id": "re_\0", "object": "refund", "payment_intent": ["pi"], "metadata": {"operation_id": {"a": 1}},
                "status": 7}},
    {"object": {"id": "x" * 300, "metadata": "y", "payment_intent": "\ud800", "status": None}},
    {"object": {"object": "charge", "id": {}, "refunds": {"data": [None]}}},
], ids=lambda d: str(d)[:40])
def test_a_signed_notice_with_nonsense_in_it_names_nothing(data: Any) -> None:
    notice = read(data=data)
    assert (notice.refund_ref, notice.operation_ref, notice.payment_ref, notice.says) == (None, None, None, "")


@pytest.mark.parametrize("changes", [
    {"id": None}, {"id": 5}, {"id": ""}, {"id": "evt_\n"}, {"id": "e" * 201}, {"type": None}, {"type": ["refund"]},
    {"type": "x\0"}, {"object": "refund"}, {"object": "v2.core.event"}, {"object": None},
], ids=str)
def test_a_notice_without_an_id_and_a_type_is_refused(changes: dict[str, Any]) -> None:
    assert isinstance(told(EVENT | changes), NoticeRefused)


@pytest.mark.parametrize("body", [
    b"", b"null", b"[]", b"5", b"{", b'{"id": "evt_1", "id": "evt_2", "object": "event", "type": "refund.updated"}',
    b'{"id": NaN}', b'{"a":' * 50_000, b'{"a": ' + b"9" * 5000 + b"}",
], ids=lambda b: repr(b[:24]))
def test_a_signed_body_that_has_no_single_meaning_is_refused(body: bytes) -> None:
    """M07 at the provider's door."""
    assert isinstance(told(body), NoticeRefused)


@pytest.mark.parametrize("value", [None, "soon", -1, 10**18, 1.5, True])
def test_a_time_that_is_none_is_left_out(value: Any) -> None:
    assert read(created=value).occurred_at is None


def test_a_mode_that_is_no_boolean_is_not_told() -> None:
    assert read(livemode="true").live is None


@pytest.mark.parametrize("header", [
    "", "t=", "v1=", f"t={STAMP}", f"v1={'0' * 64}", f"t={STAMP},v1=", f"t={STAMP},v1={'0' * 64}", "x" * 10_000,
    f"t={STAMP},v0={'0' * 64}", "t=now,v1=00", f"t=-{STAMP},v1=00", "t=٣,v1=00", f"t={'9' * 5000},v1=00",
    f"t={STAMP},v1=\u00fc", ",,,", "=", f"t={STAMP};v1=00",
], ids=lambda h: h[:30] or "empty")
def test_a_header_that_signs_nothing_is_refused(header: str) -> None:
    """F40."""
    refused = parse(json.dumps(EVENT).encode(), header)
    assert isinstance(refused, NoticeRefused) and refused.why.endswith(".")


def test_a_second_time_in_the_header_does_not_lend_an_old_signature_a_new_age() -> None:
    body = json.dumps(EVENT).encode()
    old = signed(body, at=STAMP - 10_000)
    assert isinstance(parse(body, old), NoticeRefused)
    assert isinstance(parse(body, f"{old},t={STAMP}"), NoticeRefused)
    assert isinstance(parse(body, f"t={STAMP},{old}"), NoticeRefused)
    assert isinstance(parse(body, f"{signed(body)},t={STAMP}"), NoticeRefused)


def test_one_of_several_signatures_is_enough() -> None:
    """Stripe signs with both secrets while one is replaced."""
    body = json.dumps(EVENT).encode()
    assert isinstance(parse(body, signed(body) + ",v1=" + "0" * 64), Notice)
    assert isinstance(parse(body, signed(body).replace(",v1=", f",v1={'0' * 64},v1=")), Notice)


@pytest.mark.parametrize("secrets", [(), ("",), (" ",), ("whsec_other",)], ids=str)
def test_without_the_right_secret_nothing_is_believed(secrets: tuple[str, ...]) -> None:
    body = json.dumps(EVENT).encode()
    for header in (signed(body), signed(body, secret="")):
        assert isinstance(parse(body, header, replace(ACCOUNT, notice_secrets=secrets)), NoticeRefused)


def test_a_body_that_is_not_text_is_refused() -> None:
    assert isinstance(parse(b"\xff\xfe{}", f"t={STAMP},v1={'0' * 64}"), NoticeRefused)


def test_the_largest_body_is_told_by_its_bytes() -> None:
    fits = json.dumps(EVENT | {"padding": ""}).encode()
    fits = fits.replace(b'"padding": ""', b'"padding": "' + b"p" * (BODY_MOST - len(fits)) + b'"')
    assert len(fits) == BODY_MOST
    assert isinstance(told(fits), Notice)
    refused = told(fits.replace(b"pp", b"ppp", 1))
    assert isinstance(refused, NoticeRefused) and "256 KB" in refused.why


def test_each_refusal_has_its_own_sentence() -> None:
    body = json.dumps(EVENT).encode()
    sentences = [
        parse(body, ""), parse(body, "t=1,v1=00"), parse(body, signed(body, at=STAMP - 301)), told(b"[]"),
        told(EVENT | {"id": None}), told(b" " * (BODY_MOST + 1)),
    ]
    whys = [one.why for one in sentences if isinstance(one, NoticeRefused)]
    assert len(set(whys)) == len(sentences)


def test_the_age_is_judged_without_this_machines_clock() -> None:
    """The SDK would hold the time against its own clock: 2030 is far from any real now."""
    assert isinstance(told(EVENT), Notice)


def test_another_program_verifies_what_these_tests_sign() -> None:
    """The SDK's own entry for web applications agrees that the tests' notices are signed as Stripe signs."""
    code = ("import sys, stripe; body = sys.stdin.buffer.read(); "
            "event = stripe.Webhook.construct_event(body, sys.argv[1], sys.argv[2], tolerance=None); print(event.id)")
    body = json.dumps(EVENT).encode()
    done = subprocess.run([sys.executable, "-c", code, signed(body), SECRET], input=body, capture_output=True,
                          check=True, timeout=60)
    assert done.stdout.strip() == b"evt_1"
