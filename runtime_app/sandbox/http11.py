"""The little of HTTP/1.1 that the sandbox reads and writes: Content-Length bodies, keep-alive, one write per answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus

HEAD_MOST = 64 * 1024
BODY_MOST = 4 * 1024 * 1024
_REASONS = {s.value: s.phrase for s in HTTPStatus}


class BadRequest(Exception):
    """What arrived is not a request this server reads; the connection cannot go on."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Request:
    """`target` is the path with its query as it came; header names are in small letters."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def keep_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


@dataclass(slots=True)
class Reply:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def encoded(self, *, keep_alive: bool = True) -> bytes:
        lines = [
            f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Status')}",
            f"content-type: {self.content_type}",
            f"content-length: {len(self.body)}",
        ]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if not keep_alive:
            lines.append("connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + self.body


def read_request(buffer: bytearray) -> Request | None:
    """Take one whole request off the front of `buffer`; None when more bytes are needed; BadRequest when hopeless."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > HEAD_MOST:
            raise BadRequest(431, "The request's head is too long.")
        return None
    lines = buffer[:end].decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(400, "The first line is not an HTTP/1.1 request line.")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(400, "A header has no colon.")
        headers[name.strip().lower()] = value.strip()
    if "transfer-encoding" in headers:
        raise BadRequest(411, "Send a Content-Length; chunked bodies are not read here.")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) > BODY_MOST:
        raise BadRequest(413, "The body's length cannot be accepted.")
    body_end = end + 4 + int(text)
    if len(buffer) < body_end:
        return None
    body = bytes(buffer[end + 4 : body_end])
    del buffer[:body_end]
    return Request(parts[0], parts[1], headers, body)
