"""Refusals that come from below the routes: addresses, methods, sizes, and a database that is away."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.api.callers import Caller, assert_problem, refund
from tests.api.web_process import Web, running_web
from tests.world import World


def test_addresses_that_do_not_exist_are_problems_too(world: World, shop: Caller) -> None:
    for path in ("/api/", "/api/v1", "/api/v1/", "/api/v1/task", "/api/v1/tasks/", "/api/v2/tasks", "/api/v1/tasks/x/y",
                 "/api/%00", "/api/v1/../admin", "/api/v1/tasks/a%2Fb/events"):
        for method in ("GET", "POST", "DELETE"):
            assert_problem(shop.call(method, path), 404, "not_found")


def test_methods_that_a_call_does_not_take_are_problems_that_name_those_it_takes(world: World, shop: Caller) -> None:
    for method, path, allowed in (
        ("DELETE", "/api/v1/tasks", {"GET", "POST"}), ("PUT", "/api/v1/tasks", {"GET", "POST"}),
        ("PATCH", "/api/v1/tasks/x", {"GET"}), ("GET", "/api/v1/tasks/x/cancel", {"POST"}),
        ("POST", "/api/v1/tasks/x/events", {"GET"}), ("OPTIONS", "/api/v1/tasks", {"GET", "POST"}),
    ):
        answer = shop.call(method, path)
        assert_problem(answer, 405, "method_not_allowed")
        assert {name.strip() for name in answer["Allow"].split(",")} == allowed


def test_a_wrong_host_is_a_problem(world: World, shop: Caller) -> None:
    assert_problem(shop.call("GET", "/api/v1/tasks", HTTP_HOST="evil.example"), 400, "bad_request")


def _sent(web: Web, head: str, body: Iterator[bytes]) -> bytes:
    """The answer's first bytes, to a request that is written as it stands and as far as the other side takes it."""
    where = urlsplit(web.url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=30) as raw:
        raw.sendall(head.encode())
        with contextlib.suppress(OSError):  # it has answered already, and reads no more
            for part in body:
                raw.sendall(part)
        answer = b""
        with contextlib.suppress(ConnectionResetError):  # what it left unread closes the line before its answer is read
            while part := raw.recv(65536):
                answer += part
    return answer


def test_a_body_without_a_length_is_measured_too(world: World, web: Web) -> None:
    """Django looks at Content-Length only, and keeps what it reads on disk."""
    lines = (
        "POST /api/v1/tasks HTTP/1.1", "Host: localhost", f"Authorization: Bearer {world.key}", "Idempotency-Key: k",
        "Content-Type: application/json", "Connection: close", "Transfer-Encoding: chunked", "", "",
    )
    part = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    answer = _sent(web, "\r\n".join(lines), iter([part] * 5 + [b"0\r\n\r\n"]))
    assert answer.startswith(b"HTTP/1.1 413") and b"application/problem+json" in answer
    assert b'"code": "too_large"' in answer
    answer = _sent(web, "\r\n".join(lines), iter([part] * 500))  # it never ends, and the process does not wait for it
    assert answer.startswith(b"HTTP/1.1 413") or answer == b""


def test_a_database_that_is_away_is_said_and_not_a_fault(world: World) -> None:
    """Never 500: 503 with the time to come again; alive all the while, and not ready."""
    nowhere = {"DATABASE_URL": "postgresql://nobody@/nothing?host=/nowhere"}
    with running_web(nowhere) as web, web.client(world.key) as client:
        assert client.get(f"{web.url}/healthz").status_code == 200
        ready = client.get(f"{web.url}/readyz")
        assert (ready.status_code, ready.json()["database"]) == (503, "away")
        for answer in (
            client.get("/tasks"), client.get("/events/stream"), client.get("/tasks/x/stream"),
            client.post("/tasks", json=refund("ORD-1"), headers={"Idempotency-Key": "k"}),
        ):
            assert answer.status_code == 503, answer.text
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.json()["code"] == "unavailable" and int(answer.headers["Retry-After"]) > 0


def test_ready_says_that_database_and_redis_answer(world: World, web: Web) -> None:
    with web.client() as client:
        answer = client.get(f"{web.url}/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "database": "ok", "redis": "ok"})
