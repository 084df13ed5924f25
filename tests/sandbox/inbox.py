"""A receiver of notices: it keeps everything that arrives, and answers as it is told to."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.sandbox_process import wait_until


@dataclass(frozen=True)
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.body)
        return told

    @property
    def signature(self) -> str:
        return self.headers.get("stripe-signature", "")


@dataclass
class Inbox:
    """`answers` are given in their order, then 200; `gate` is waited for before each answer."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def types(self) -> list[str]:
        return [one.event["type"] for one in self.received]

    def wait(self, count: int) -> list[Received]:
        """What arrived, as soon as it is so many."""
        wait_until(lambda: len(self.received) >= count)
        return list(self.received)


@contextlib.contextmanager
def open_inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    inbox.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            inbox.received.append(Received({k.lower(): v for k, v in self.headers.items()}, body))
            inbox.gate.wait(20)
            self.send_response(inbox.answers.pop(0) if inbox.answers else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    inbox.url = f"http://127.0.0.1:{server.server_address[1]}/notices?for=us"
    try:
        yield inbox
    finally:
        inbox.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()
