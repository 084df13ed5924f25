"""What stands between the adapter and a bank, and loses, holds or garbles what passes: the bank itself never does."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from urllib.parse import urlsplit

_HEAD = b"HTTP/1.1 %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"


def _answer(status: bytes, body: bytes) -> bytes:
    return _HEAD % (status, len(body), body)


ERROR = _answer(b"500 Internal Server Error", b'{"error": "out of order"}')
# What is said instead of the bank's own answer. None: nothing, the connection ends.
INSTEAD: dict[str, bytes | None] = {
    "F2": None, "F4": None, "F10": ERROR, "F11": ERROR, "F7": _answer(b"202 Accepted", b"\xff{garbage"),
    "F8": _answer(b"502 Bad Gateway", b"<html>bad gateway</html>"),
    "F12": _answer(b"429 Too Many Requests", b'{"error": "slowly"}').replace(b"\r\n", b"\r\nretry-after: 1\r\n", 1),
    "F18": _answer(b"401 Unauthorized", b'{"error": "who are you"}'),
}
FORWARDED = frozenset({"F4", "F5", "F6", "F7", "F11"})
HANGS = frozenset({"F3", "F5"})


class Relay:
    """`faults` holds the numbers of what happens to the next files, in order; `files` every file that came."""

    def __init__(self, bank_url: str) -> None:
        self._bank = urlsplit(bank_url).netloc.split(":")
        self._server = socket.create_server(("127.0.0.1", 0))
        self._held: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.faults: deque[str] = deque()
        self.files: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for held in self._held:
            held.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(connection,), daemon=True).start()

    def _pass(self, connection: socket.socket) -> None:
        connection.settimeout(20)
        with contextlib.suppress(OSError):
            request, body = _read(connection)
            fault = ""
            if request.startswith(b"POST /payments"):
                self.files.append(body)
                fault = self.faults.popleft() if self.faults else ""
            reply = self._ask(request + body) if not fault or fault in FORWARDED else b""
            if fault in HANGS:
                self._held.append(connection)
                return
            said = INSTEAD[fault] if fault in INSTEAD else reply[: len(reply) // 2] if fault == "F6" else reply
            connection.sendall(said or b"")
        connection.close()

    def _ask(self, request: bytes) -> bytes:
        with socket.create_connection((self._bank[0], int(self._bank[1])), 20) as bank:
            bank.sendall(request)
            return b"".join(iter(lambda: bank.recv(65536), b""))


def _read(connection: socket.socket) -> tuple[bytes, bytes]:
    """The head, which ends the connection, and the body of one request."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536) or b"\r\n\r\n"
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    length = next((int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return b"\r\n".join([*lines, b"Connection: close", b"", b""]), body
