"""An answer that drips in byte by byte is no answer; it must not keep a thread, a lease and a sender's lock."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from runtime_app.adapters.wire import exchange

HEADERS = b"HTTP/1.1 200 OK\r\nX: " + b"a" * 10_000
BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + b"a" * 9_999
CLOSED = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10000\r\n\r\n" + b"a" * 9_999


@contextlib.contextmanager
def _dripping(answer: bytes, over: threading.Event) -> Iterator[str]:
    """A server that sends the answer byte by byte, each well within a socket's timeout, until `over`."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                for number in range(len(answer)):
                    client.send(answer[number : number + 1])
                    if number > 60 and over.wait(0.05):
                        return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            over.set()
            thread.join(10)


@pytest.mark.parametrize("answer", [HEADERS, BODY, CLOSED], ids=["headers", "body", "closing"])
def test_an_answer_that_drips_in_ends_with_the_time_it_was_given(answer: bytes) -> None:
    """Rule 3: the wait ends long before the drip does, and what was read until then counts as nothing."""
    over = threading.Event()
    guard = threading.Timer(20, over.set)  # so that a wait without an end fails here and not by the run's own limit
    guard.start()
    try:
        with _dripping(answer, over) as url:
            seen = exchange(
                "POST", url, headers={}, body=b"x", connect=0.5, read=0.5, send_before=time.monotonic() + 30
            )
            assert not over.is_set()
    finally:
        guard.cancel()
    assert seen.status is None and seen.cause and not seen.untouched


def test_a_connection_that_was_watched_is_used_again() -> None:
    """The watch of one exchange ends with it and leaves the kept-alive connection alone."""
    accepted: list[int] = []

    def serve() -> None:
        client, _ = listener.accept()
        accepted.append(1)
        with client:
            while client.recv(65536):
                client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        seen = [exchange("GET", url, headers={}, body=None, connect=1, read=0.2).status for _ in range(20)]
    assert seen == [200] * 20 and accepted == [1]
