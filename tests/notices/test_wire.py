"""S10 on the real wire: bodies that are too large, said so or not, doubled headers, and a database that is away."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from runtime_app.models import Notice
from tests.api.web_process import Web, running_web
from tests.notices.teller import Teller, event, signature


def _client() -> httpx.Client:
    return httpx.Client(timeout=30, trust_env=False)


def _problem(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json" and answer.json()["code"] == code
    assert not Notice.objects.exists()


def test_a_notice_over_the_wire_is_stored_before_it_is_answered(web: Web, stripe: Teller) -> None:
    body = json.dumps(event("re_1")).encode()
    with _client() as client:
        answer = client.post(web.url + stripe.path, content=body, headers={"Stripe-Signature": signature(body)})
    assert (answer.status_code, answer.json()) == (200, {"received": True, "known": False})
    assert Notice.objects.get().refund_ref == "re_1" and "set-cookie" not in answer.headers


@pytest.mark.parametrize("size", [256 * 1024 + 1, 1_000_000, 5_000_000])
def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(web: Web, stripe: Teller, size: int) -> None:
    """S10: with a Content-Length, and in chunks whose end nobody knows."""

    def chunks() -> Iterator[bytes]:
        for start in range(0, size, 50_000):
            yield b"x" * min(50_000, size - start)

    header = {"Stripe-Signature": "t=1,v1=00"}
    with _client() as client:
        _problem(client.post(web.url + stripe.path, content=b"x" * size, headers=header), 413, "too_large")
        _problem(client.post(web.url + stripe.path, content=chunks(), headers=header), 413, "too_large")


def test_a_body_without_an_end_is_cut_off(web: Web, stripe: Teller) -> None:
    """Whoever goes on sending is left: 413 or a closed connection, and the process lives."""

    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 100_000

    with _client() as client:
        with contextlib.suppress(httpx.TransportError):
            _problem(client.post(web.url + stripe.path, content=endless()), 413, "too_large")
        assert client.get(f"{web.url}/healthz").status_code == 200


def test_a_signature_that_comes_twice_is_refused(web: Web, stripe: Teller) -> None:
    """S10: two headers, of which one is right: nobody can say which one counts."""
    body = json.dumps(event()).encode()
    headers = [("Stripe-Signature", signature(body)), ("Stripe-Signature", signature(body, "whsec_nobody", age=5))]
    with _client() as client:
        _problem(client.post(web.url + stripe.path, content=body, headers=headers), 400, "notice_refused")


def test_a_sender_that_goes_away_leaves_nothing(web: Web, stripe: Teller) -> None:
    address = urlsplit(web.url)
    with socket.create_connection((address.hostname or "", address.port or 0), 10) as gone:
        gone.sendall(f"POST {stripe.path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 500\r\n\r\n{{".encode())
    with _client() as client:
        assert client.get(f"{web.url}/healthz").status_code == 200
    assert not Notice.objects.exists()


def test_other_methods_and_other_addresses_are_told_as_problems(web: Web, stripe: Teller) -> None:
    with _client() as client:
        answer = client.get(web.url + stripe.path)
        _problem(answer, 405, "method_not_allowed")
        assert answer.headers["allow"] == "POST"
        _problem(client.post(f"{web.url}/hooks/stripe/x", content=b"{}"), 404, "not_found")
        _problem(client.post(web.url + stripe.path, headers={"Host": "evil.example"}), 400, "bad_request")


@pytest.fixture(scope="module")
def web_alone(django_db_setup: None) -> Iterator[Web]:
    """A web process whose database is not there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    nowhere = urlsplit(os.environ["DATABASE_URL"])._replace(netloc=f"nobody@127.0.0.1:{port}", query="").geturl()
    with running_web({"DATABASE_URL": nowhere}) as started:
        yield started


def test_a_database_that_is_away_means_send_it_again(web_alone: Web, stripe: Teller) -> None:
    """What cannot be stored is not answered with a success, so that the provider sends it again."""
    body = json.dumps(event()).encode()
    with _client() as client:
        answer = client.post(web_alone.url + stripe.path, content=body, headers={"Stripe-Signature": signature(body)})
    _problem(answer, 503, "unavailable")
    assert answer.headers["retry-after"]
