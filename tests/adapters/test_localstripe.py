"""The same adapter against `localstripe`, a server that none of us wrote: the happy path of the wire format.

What it cannot do, and what the adapter makes of that, is written down as tests too: it has no idempotency, no
over-refund check and no `amount_received`, so absence is never proved there. It runs as a process and is a tool of
development only.
"""

from __future__ import annotations

import fcntl
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import (
    Deadline,
    Declined,
    Found,
    Inconclusive,
    OutcomeUnknown,
    ProviderAccount,
    RefundStatus,
    Succeeded,
)
from runtime_app.money import Money
from tests.adapters.providers import Refunding
from tests.sandbox_process import wait_until

KEY = "sk_test_localstripe"


class AtLocalstripe:
    destination: str | None = None

    def __init__(self, url: str) -> None:
        self.account = ProviderAccount("acct_l", "stripe", KEY, url)
        self.payments = StripePayments(connect_timeout=5, read_timeout=20)

    def open_payment(self, captured: int = 10000, currency: str = "USD") -> str:
        def post(path: str, data: dict[str, str]) -> str:
            answer = requests.post(f"{self.account.base_url}/v1/{path}", data=data, auth=(KEY, ""), timeout=20)
            answer.raise_for_status()
            return str(answer.json()["id"])

        method = post("payment_methods", {
            "type": "card", "card[number]": "4242424242424242", "card[exp_month]": "12", "card[exp_year]": "2040",
            "card[cvc]": "123",
        })
        return post("payment_intents", {
            "amount": str(captured), "currency": currency.lower(), "payment_method": method, "confirm": "true",
        })


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
