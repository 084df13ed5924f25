"""Posting notices: signed as Stripe signs them, on threads of their own, so that a slow receiver stops nobody."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import http.client
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from urllib.parse import urlsplit

TIMEOUT = 10.0
_LANES, _URGENT, _HANDS = 4, -1, 8
Answered = int | str  # the receiver's status, or in words why there is none


@dataclass(frozen=True, slots=True)
class Post:
    url: str
    body: bytes
    headers: dict[str, str]
    done: Callable[[Answered], None] = field(repr=False)


def signature(secret: str, at: int, body: bytes) -> str:
    """The value of the Stripe-Signature header."""
    return f"t={at},v1={hmac.new(secret.encode(), f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"


class Courier:
    """Posts to one address go one after the other, in their order; urgent ones wait neither for them nor for others."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lanes: dict[int, SimpleQueue[Post]] = {}

    def send(self, post: Post, *, urgent: bool = False) -> None:
        """Post it, and call `done` with the answer on the loop."""
        number = _URGENT if urgent else zlib.crc32(post.url.encode()) % _LANES
        lane = self._lanes.get(number)
        if lane is None:
            lane = self._lanes[number] = SimpleQueue()
            for _ in range(_HANDS if urgent else 1):
                threading.Thread(target=self._carry, args=(lane,), name=f"courier {number}", daemon=True).start()
        lane.put(post)

    def _carry(self, lane: SimpleQueue[Post]) -> None:
        while True:
            post = lane.get()
            answered = _posted(post)
            with contextlib.suppress(RuntimeError):  # the loop is closed: the sandbox is ending
                self._loop.call_soon_threadsafe(post.done, answered)


def _posted(post: Post) -> Answered:
    parts = urlsplit(post.url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT)
    try:
        connection.request("POST", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), post.body,
                           post.headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{type(error).__name__}: {error}"[:200]
    finally:
        connection.close()
