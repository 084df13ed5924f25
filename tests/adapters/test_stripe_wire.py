"""What really goes over the wire to Stripe: the frozen bytes, the pinned version, our key, once and in time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from runtime_app.adapters import wire
from runtime_app.adapters.payments import build
from runtime_app.adapters.payments.bank import BankPayments
from runtime_app.adapters.payments.stripe import API_VERSION, StripePayments
from runtime_app.adapters.payments.types import (
    Deadline,
    Found,
    Inconclusive,
    NoSuchRefund,
    NotSent,
    OutcomeUnknown,
    ProviderAccount,
    Succeeded,
)
from runtime_app.money import Money
from tests.adapters.providers import Refunding, StripeAtSandbox
from tests.sandbox_process import wait_until

Answers = Callable[[bytes], str]


@pytest.fixture
def heard() -> list[bytes]:
    return []


@pytest.fixture
def answers(heard: list[bytes]) -> Iterator[Answers]:
    """Start a server that reads one request a connection and sends these bytes back; returns its address."""
    servers: list[socket.socket] = []

    def start(reply: bytes) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    heard.append(connection.recv(65536))
                    connection.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def refund_at(url: str, *, read_timeout: float = 5.0) -> object:
    payments = StripePayments(connect_timeout=5, read_timeout=read_timeout)
    account = ProviderAccount("a", "stripe", "sk_test_x", url)
    request = payments.freeze(account, operation_id=uuid4(), payment_ref="pi_1", amount=Money(5, "USD"), reason=None)
    return payments.create_refund(
        account, request, idempotency_key="k", resend=False, deadline=Deadline.after(20)
    )


@pytest.mark.parametrize("reason", ["late", "späte Ware & [more]=1", "zero \0 byte, half \ud800 pair", "x" * 2000])
def test_the_frozen_bytes_are_what_is_sent_every_time(stripe: StripeAtSandbox, reason: str) -> None:
    """I3 of money.md."""
    refund = Refunding(stripe, stripe.open_payment(), Money(500, "USD"))
    request = stripe.payments.freeze(
        stripe.account, operation_id=refund.operation_id, payment_ref=refund.payment_ref, amount=refund.amount,
        reason=reason,
    )
    stripe.sandbox.fault("F4", match={"payment_ref": refund.payment_ref})
    for resend in (False, True):
        stripe.payments.create_refund(stripe.account, request, idempotency_key=str(refund.operation_id), resend=resend,
                                      deadline=Deadline.after(20))
    sent = stripe.sandbox.requests(payment_ref=refund.payment_ref)
    assert [r["body_sha256"] for r in sent] == [request.body_sha256] * 2
    assert {r["idempotency_key"] for r in sent} == {str(refund.operation_id)}
    assert len(stripe.moved(refund.payment_ref)) == 1


def test_the_head_carries_the_pinned_version_our_key_and_nothing_of_this_machine(
    answers: Answers, heard: list[bytes]
) -> None:
    refund_at(answers(b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n"))
    head = heard[0].split(b"\r\n\r\n")[0].decode().lower()
    assert f"stripe-version: {API_VERSION}" in head
    assert "idempotency-key: k\r\n" in head and "authorization: bearer sk_test_x" in head
    assert "content-type: application/x-www-form-urlencoded" in head
    assert "telemetry" not in head and "platform" not in head


def retrieved(url: str) -> object:
    return StripePayments(connect_timeout=5, read_timeout=5).retrieve_refund(
        ProviderAccount("a", "stripe", "sk_test_x", url), refund_ref="re_1", deadline=Deadline.after(20))


@pytest.mark.parametrize(("status", "body", "expected"), [
    (404, '{"error": {"type": "invalid_request_error", "code": "resource_missing"}}', NoSuchRefund),
    (404, "<html>no such page</html>", Inconclusive), (404, "{}", Inconclusive), (500, "{}", Inconclusive),
    (403, '{"error": {"type": "invalid_request_error"}}', Inconclusive), (200, "{}", Inconclusive),
    (200, '{"id": "re_2", "object": "refund", "amount": 5, "currency": "usd", "payment_intent": "pi_1",'
          ' "status": "succeeded"}', Inconclusive),
    (200, '{"id": "re_1", "object": "refund", "amount": 5, "currency": "usd", "payment_intent": "pi_1",'
          ' "status": "succeeded"}', Found),
    (200, '{"id": "re_1", "object": "refund", "amount": 5.0, "currency": "usd", "payment_intent": "pi_1",'
          ' "status": "succeeded"}', Inconclusive),
])
def test_only_stripe_itself_says_that_a_refund_does_not_exist(
    answers: Answers, status: int, body: str, expected: type
) -> None:
    """F28, and the page of a proxy: a missing page is not a missing refund."""
    reply = f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
    assert type(retrieved(answers(reply))) is expected


def test_a_reference_cannot_lead_to_another_address(answers: Answers, heard: list[bytes]) -> None:
    url = answers(b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n")
    payments, account = StripePayments(connect_timeout=5, read_timeout=5), ProviderAccount("a", "stripe", "sk_x", url)
    payments.retrieve_refund(account, refund_ref="../charges?x=/y#", deadline=Deadline.after(20))
    payments.retrieve_payment(account, payment_ref="ch_/../../x", deadline=Deadline.after(20))
    paths = [request.split(b" ")[1] for request in heard]
    assert paths == [b"/v1/refunds/..%2Fcharges%3Fx%3D%2Fy%23", b"/v1/charges/ch_%2F..%2F..%2Fx"]


def test_a_redirect_is_not_followed(answers: Answers, heard: list[bytes]) -> None:
    elsewhere = answers(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
    moved = f"HTTP/1.1 307 Moved\r\nlocation: {elsewhere}/v1/refunds\r\ncontent-length: 0\r\n\r\n".encode()
    assert isinstance(refund_at(answers(moved)), OutcomeUnknown)
    assert len(heard) == 1


def test_no_cookie_travels_from_one_account_to_another(answers: Answers, heard: list[bytes]) -> None:
    url = answers(b"HTTP/1.1 500 x\r\nset-cookie: who=me; path=/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    refund_at(url)
    refund_at(url)
    assert b"cookie" not in heard[1].lower()


@pytest.mark.parametrize("reply", [
    b"", b"\0\0\0", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{", b"HTTP/1.1 204 None\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
    b"HTTP/1.1 404 Gone\r\ncontent-length: 13\r\n\r\n<html></html>",
    b"HTTP/1.1 403 Blocked\r\ncontent-length: 13\r\n\r\n<html></html>",
    b"HTTP/1.1 429 Slow\r\ncontent-length: 0\r\n\r\n",
    b'HTTP/1.1 400 Bad\r\ncontent-length: 15\r\n\r\n{"error":"bad"}',
    b'HTTP/1.1 202 Ok\r\ncontent-length: 2\r\n\r\n{}',
], ids=str)
def test_an_answer_that_is_not_stripes_is_unknown(answers: Answers, reply: bytes) -> None:
    """money.md 2: everything that is neither proved done nor proved not done is unknown, a proxy's page too."""
    assert isinstance(refund_at(answers(reply)), OutcomeUnknown)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://name.invalid", "nonsense", "ftp://x", "http://["])
def test_an_address_that_leads_nowhere_is_proved_not_sent(url: str) -> None:
    assert isinstance(refund_at(url), NotSent)


def test_a_key_that_cannot_be_a_header_is_proved_not_sent(stripe: StripeAtSandbox) -> None:
    refund = Refunding(stripe, stripe.open_payment(), Money(500, "USD"))
    assert isinstance(refund.send(key="two\r\nlines: x"), NotSent)
    assert stripe.sandbox.requests(payment_ref=refund.payment_ref) == []


def test_nothing_is_sent_when_connecting_took_until_after_the_deadline(
    stripe: StripeAtSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resolving a name has no timeout, so the deadline is looked at again once the connection stands."""
    refund = Refunding(stripe, stripe.open_payment(), Money(500, "USD"))
    deadline = Deadline.after(0.2)
    resolve = socket.getaddrinfo

    def slowly(*args: Any, **kwargs: Any) -> Any:
        wait_until(lambda: deadline.left < 0)
        return resolve(*args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    with ThreadPoolExecutor(1) as fresh:  # a thread without a kept connection
        result = fresh.submit(
            stripe.payments.create_refund, stripe.account, refund.request, idempotency_key="k-late", resend=False,
            deadline=deadline,
        ).result()
    monkeypatch.undo()
    assert isinstance(result, NotSent) and result.cause == "deadline passed before sending"
    assert stripe.sandbox.requests(payment_ref=refund.payment_ref) == []


def test_a_time_limit_that_strikes_while_waiting_leaves_the_outcome_unknown(
    stripe: StripeAtSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C22: the queue's time limit is an ordinary exception; it proves nothing about the provider."""
    class TimeLimit(Exception):
        pass

    refund = Refunding(stripe, stripe.open_payment(), Money(500, "USD"))

    def struck(*_read: object, **_more: object) -> bytes:
        raise TimeLimit

    monkeypatch.setattr(wire, "_read_all", struck)
    result = refund.send()
    assert isinstance(result, OutcomeUnknown) and "TimeLimit" in result.cause
    assert len(stripe.moved(refund.payment_ref)) == 1


def test_many_threads_share_one_adapter(stripe: StripeAtSandbox) -> None:
    refunds = [Refunding(stripe, stripe.open_payment(), Money(100 + n, "USD")) for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda refund: refund.send(), refunds))
    for refund, result in zip(refunds, results, strict=True):
        assert isinstance(result, Succeeded) and result.refund.operation_ref == str(refund.operation_id)
        assert stripe.moved(refund.payment_ref) == [(refund.amount.minor, str(refund.operation_id))]


def test_a_connection_that_the_provider_closed_meanwhile_is_not_used_again(stripe: StripeAtSandbox) -> None:
    """F9: closed while idle, noticed before the next send, which goes out on a new connection."""
    first = Refunding(stripe, stripe.open_payment(), Money(500, "USD"))
    stripe.sandbox.fault("F9", match={"payment_ref": first.payment_ref})
    assert isinstance(first.send(), Succeeded)
    for _ in range(3):  # turns of the sandbox's loop, after which it has closed the other connection
        stripe.sandbox.refunds(first.payment_ref)
    assert isinstance(Refunding(stripe, first.payment_ref, Money(500, "USD")).send(), Succeeded)


def test_the_table_of_providers_knows_its_names() -> None:
    assert isinstance(build("stripe", connect_timeout=1, read_timeout=1), StripePayments)
    assert isinstance(build("bank", connect_timeout=1, read_timeout=1), BankPayments)
    with pytest.raises(ValueError, match="there is bank, stripe"):
        build("strype", connect_timeout=1, read_timeout=1)
