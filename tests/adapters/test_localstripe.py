"""The same adapter against `localstripe`, a server that none of us wrote: the happy path of the wire format.

What it cannot do, and what the adapter makes of that, is written down as tests too: it has no idempotency, no
over-refund check, no filter by time, no cancel, no notices of refunds and no `amount_received`, so absence is never
proved there. It runs as a process and is a tool of development only.
"""

from __future__ import annotations

import fcntl
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import (
    Deadline,
    Declined,
    Found,
    Inconclusive,
    LineKind,
    NoSuchRefund,
    Notice,
    NoticeRefused,
    OutcomeUnknown,
    ProviderAccount,
    RefundPage,
    RefundStatus,
    Statement,
    Succeeded,
)
from runtime_app.money import Money
from tests.adapters.providers import Refunding
from tests.adapters.receiving import receiving
from tests.sandbox_process import wait_until

KEY, SECRET = "sk_test_localstripe", "whsec_localstripe"


class AtLocalstripe:
    destination: str | None = None

    def __init__(self, url: str) -> None:
        self.account = ProviderAccount("acct_l", "stripe", KEY, url, settings={"created_filter": "off"},
                                       notice_secrets=(SECRET,))
        self.payments = StripePayments(connect_timeout=5, read_timeout=20)

    def post(self, path: str, data: dict[str, str]) -> Any:
        answer = requests.post(f"{self.account.base_url}/{path}", data=data, auth=(KEY, ""), timeout=20)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def pay(self, path: str, captured: int, currency: str, **more: str) -> str:
        method = self.post("v1/payment_methods", {
            "type": "card", "card[number]": "4242424242424242", "card[exp_month]": "12", "card[exp_year]": "2040",
            "card[cvc]": "123",
        })
        which = "source" if path == "v1/charges" else "payment_method"
        return str(self.post(path, {
            "amount": str(captured), "currency": currency.lower(), which: method["id"], **more})["id"])

    def open_payment(self, captured: int = 10000, currency: str = "USD") -> str:
        return self.pay("v1/payment_intents", captured, currency, confirm="true")


@pytest.fixture(scope="module")
def localstripe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AtLocalstripe]:
    program = Path(sys.executable).parent / "localstripe"
    assert program.exists(), "localstripe is among the development requirements"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Its whole store is one file with a fixed name, so only one may run on a machine at a time.
    with open("/tmp/countersign-localstripe.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            [str(program), "--port", str(port), "--from-scratch"], cwd=tmp_path_factory.mktemp("localstripe"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            def answers() -> bool:
                try:
                    return requests.get(f"http://127.0.0.1:{port}/v1/refunds", auth=(KEY, ""), timeout=5).ok
                except requests.ConnectionError:
                    return False

            wait_until(answers, 60)
            yield AtLocalstripe(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(10)


def refunding(at: AtLocalstripe, payment: str, minor: int) -> Refunding:
    return Refunding(at, payment, Money(minor, "USD"))


def test_partial_refunds_are_made_and_each_found_by_its_operation(localstripe: AtLocalstripe) -> None:
    payment = localstripe.open_payment()
    for minor in (700, 300):
        refund = refunding(localstripe, payment, minor)
        made = refund.send()
        assert isinstance(made, Succeeded), made
        assert (made.refund.amount, made.refund.status) == (Money(minor, "USD"), RefundStatus.SUCCEEDED)
        found = refund.find()
        assert isinstance(found, Found), found
        assert [r.ref for r in found.refunds] == [made.refund.ref]


def test_an_unknown_payment_is_declined(localstripe: AtLocalstripe) -> None:
    assert isinstance(refunding(localstripe, "pi_nowhere", 5).send(), Declined)


def test_its_keys_are_not_remembered_so_a_resend_pays_again(localstripe: AtLocalstripe) -> None:
    """What a provider without idempotency does to a resend; both refunds are found and told."""
    refund = refunding(localstripe, localstripe.open_payment(), 100)
    assert isinstance(refund.send(), Succeeded) and isinstance(refund.send(resend=True), Succeeded)
    found = refund.find()
    assert isinstance(found, Found) and len(found.refunds) == 2


def test_more_than_there_is_is_refunded_there(localstripe: AtLocalstripe) -> None:
    """Nothing but our own balance keeps a refund from being too large."""
    assert isinstance(refunding(localstripe, localstripe.open_payment(1000), 5000).send(), Succeeded)


def test_a_charge_is_refunded_by_its_own_name(localstripe: AtLocalstripe) -> None:
    charge = localstripe.pay("v1/charges", 2000, "USD")
    assert charge.startswith("ch_")
    refund = refunding(localstripe, charge, 700)
    made = refund.send()
    assert isinstance(made, Succeeded) and made.refund.payment_ref == charge
    found = refund.find()
    assert isinstance(found, Found) and [r.ref for r in found.refunds] == [made.refund.ref]


def test_one_refund_is_read_by_its_reference(localstripe: AtLocalstripe) -> None:
    made = refunding(localstripe, localstripe.open_payment(), 100).send()
    assert isinstance(made, Succeeded)
    for ref, expected in ((made.refund.ref, Found), ("re_nowhere", NoSuchRefund)):
        told = localstripe.payments.retrieve_refund(localstripe.account, refund_ref=ref, deadline=Deadline.after(20))
        assert isinstance(told, expected)


def listed(at: AtLocalstripe, payment: str | None, since: datetime | None = None) -> list[str]:
    refs: list[str] = []
    cursor = None
    while True:
        page = at.payments.list_refunds(
            at.account, payment_ref=payment, since=since, cursor=cursor, deadline=Deadline.after(20))
        assert isinstance(page, RefundPage), page
        refs += [refund.ref for refund in page.refunds]
        if (cursor := page.next_cursor) is None:
            return refs


def test_lists_go_over_pages_without_a_filter_by_time(localstripe: AtLocalstripe) -> None:
    """It answers 500 to `created`; the adapter never sends it for refunds."""
    payment = localstripe.open_payment(100_000)
    refs = []
    for _ in range(101):
        made = refunding(localstripe, payment, 1).send()
        assert isinstance(made, Succeeded)
        refs.append(made.refund.ref)
    assert set(listed(localstripe, payment)) == set(refs) and len(listed(localstripe, payment)) == 101
    assert set(refs) <= set(listed(localstripe, None, datetime.now(UTC) - timedelta(minutes=10)))


def test_a_day_is_read_from_its_balance_without_a_filter(localstripe: AtLocalstripe) -> None:
    """The setting `created_filter` off: charges and refunds are there. A filter is refused by the server."""
    refund = refunding(localstripe, localstripe.open_payment(), 300)
    made = refund.send()
    assert isinstance(made, Succeeded)
    told = localstripe.payments.read_statement(
        localstripe.account, day=datetime.now(UTC).date(), deadline=Deadline.after(20))
    assert isinstance(told, Statement) and told.trouble == ""
    line, = [line for line in told.lines if line.provider_ref == made.refund.ref]
    assert (line.kind, line.amount, line.our_ref) == (LineKind.REFUND, Money(-300, "USD"), str(refund.operation_id))
    assert any(line.kind is LineKind.OTHER and line.amount.minor == 10000 for line in told.lines)
    filtered = localstripe.payments.read_statement(
        replace(localstripe.account, settings={}), day=datetime.now(UTC).date(), deadline=Deadline.after(20))
    assert isinstance(filtered, Inconclusive) and "400" in filtered.cause


def test_a_nameless_refund_stays_one(localstripe: AtLocalstripe) -> None:
    """Its events know nothing of refunds or keys."""
    payment = localstripe.open_payment()
    localstripe.post("v1/refunds", {"payment_intent": payment, "amount": "5"})
    assert isinstance(refunding(localstripe, payment, 5).find(), Inconclusive)


def test_its_signature_is_the_one_that_the_adapter_checks(localstripe: AtLocalstripe) -> None:
    """C06: an independent server signs, the official SDK verifies."""
    with receiving() as (url, came):
        localstripe.post("_config/webhooks/ours", {"url": url, "secret": SECRET})
        payment = localstripe.open_payment()
        wait_until(lambda: any(payment.encode() in body for _, body in list(came)))
        headers, body = next(letter for letter in came if payment.encode() in letter[1])
        localstripe.post("_config/webhooks/ours", {"url": url, "secret": "whsec_unused", "events[]": "none.such"})

    def parse(account: ProviderAccount, now: datetime) -> Notice | NoticeRefused:
        return localstripe.payments.parse_notice(account, headers=headers, body=body, now=now)

    now = datetime.now(UTC)
    told = parse(localstripe.account, now)
    assert isinstance(told, Notice) and (told.kind, told.refund_ref) == ("payment_intent.succeeded", None)
    assert isinstance(parse(localstripe.account, now + timedelta(seconds=400)), NoticeRefused)
    assert isinstance(parse(replace(localstripe.account, notice_secrets=("whsec_other",)), now), NoticeRefused)


def test_absence_cannot_be_proved_there(localstripe: AtLocalstripe) -> None:
    refund = refunding(localstripe, localstripe.open_payment(), 100)
    assert isinstance(refund.find(), Inconclusive)


def test_its_missing_cancel_is_no_proof_of_anything(localstripe: AtLocalstripe) -> None:
    made = refunding(localstripe, localstripe.open_payment(), 100).send()
    assert isinstance(made, Succeeded)
    result = localstripe.payments.cancel_refund(
        localstripe.account, refund_ref=made.refund.ref, idempotency_key="c", deadline=Deadline.after(20)
    )
    assert isinstance(result, OutcomeUnknown)
