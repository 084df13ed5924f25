"""HTTP for adapters: one kept-alive session a thread, no retries, no redirects, and a deadline for sending.

What comes back says what is known of the exchange, so that an adapter decides by evidence and not by exception class.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests import exceptions as failures
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import MaxRetryError, NameResolutionError, NewConnectionError

from runtime_app.addresses import is_public

ANSWER_MOST = 8 * 1024 * 1024
_thread = threading.local()


class DeadlinePassed(Exception):
    """The time in which something may be sent was over before it was sent."""


def _check_deadline() -> None:
    deadline = getattr(_thread, "deadline", None)
    if deadline is not None and time.monotonic() >= deadline:
        raise DeadlinePassed


class _Watch:
    """Ends an exchange at its time: a socket's own timeout begins anew with every byte that drips in."""

    def __init__(self, seconds: float) -> None:
        self._sockets: list[socket.socket] = []
        self.ended = False
        self._mutex = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def add(self, used: socket.socket | None) -> None:
        with self._mutex:
            if used is not None:
                self._sockets.append(used)

    def _end(self) -> None:
        with self._mutex:
            self.ended = bool(self._sockets)
            for used in self._sockets:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(used, socket.SHUT_RDWR)  # whoever reads it reads its end

    def over(self) -> None:
        self._timer.cancel()
        with self._mutex:
            self._sockets.clear()


def _watch(used: socket.socket | None) -> None:
    if (watch := getattr(_thread, "watch", None)) is not None:
        watch.add(used)


class _Connection(HTTPConnection):
    def connect(self) -> None:
        # Resolving a name has no timeout of its own: what took too long to connect must not be sent any more.
        super().connect()
        _check_deadline()

    def request(self, *args: Any, **kwargs: Any) -> None:
        super().request(*args, **kwargs)
        _watch(self.sock)


class _SecureConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _check_deadline()

    def request(self, *args: Any, **kwargs: Any) -> None:
        super().request(*args, **kwargs)
        _watch(self.sock)


class NotPublic(NewConnectionError):
    """Where the name leads is not in the public internet; the connection was closed before a byte was sent."""


class _PublicConnection(_Connection):
    def _new_conn(self) -> socket.socket:
        return _public(self, super()._new_conn())


class _PublicSecureConnection(_SecureConnection):
    def _new_conn(self) -> socket.socket:
        return _public(self, super()._new_conn())


def _public(connection: HTTPConnection, made: socket.socket) -> socket.socket:
    """The connected socket itself is judged: a name may lead elsewhere each time that it is resolved."""
    if not is_public(str(made.getpeername()[0])):
        made.close()
        raise NotPublic(connection, "not a public address")
    return made


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _PublicPool(HTTPConnectionPool):
    ConnectionCls = _PublicConnection


class _PublicSecurePool(HTTPSConnectionPool):
    ConnectionCls = _PublicSecureConnection


class _Transport(HTTPAdapter):
    pools = {"http": _Pool, "https": _SecurePool}

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self.pools


class _PublicTransport(_Transport):
    pools = {"http": _PublicPool, "https": _PublicSecurePool}


def session(*, public: bool = False) -> requests.Session:
    """This thread's session. It keeps connections and nothing else: no cookies, no proxies or passwords from around.
    The `public` one connects to addresses of the public internet only.
    """
    name = "public_session" if public else "session"
    kept: requests.Session | None = getattr(_thread, name, None)
    if kept is None:
        kept = requests.Session()
        setattr(_thread, name, kept)
        kept.trust_env = False
        kept.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        transport = _PublicTransport if public else _Transport
        for scheme in ("http://", "https://"):
            kept.mount(scheme, transport(max_retries=0, pool_connections=16, pool_maxsize=4))
    return kept


@dataclass(slots=True)
class Exchange:
    """One request and what became of it. `status` is None when no whole answer was read; then `cause` says why.

    `untouched` is true only when it is proved that the request's bytes never left.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    cause: str = ""
    untouched: bool = False


def exchange(
    method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, connect: float, read: float,
    send_before: float | None = None, cut_at: int | None = None, public: bool = False,
) -> Exchange:
    """Send once and read the whole answer. Never raises for anything that the network or the other side does.

    `send_before` is an instant of the monotonic clock: from then on nothing is sent. Neither connecting nor waiting
    takes longer than what was left until it. `read` bounds each wait for bytes and, together, the reading of the body;
    all together ends after connecting and twice `read`, whatever drips in. Of an answer that is longer than `cut_at`
    the rest is left unread. With `public` only addresses of the public internet are connected to.
    """
    _thread.deadline = send_before
    watch: _Watch | None = None
    try:
        _check_deadline()
        if send_before is not None:
            left = max(0.001, send_before - time.monotonic())
            connect, read = min(connect, left), min(read, left)
        watch = _thread.watch = _Watch(connect + 2 * read)
        response = session(public=public).request(
            method, url, headers=dict(headers), data=body, timeout=(connect, read), allow_redirects=False, stream=True
        )
        try:
            content = _read_all(response, time.monotonic() + read, cut_at)
        except BaseException:
            response.close()
            raise
        if watch.ended:  # an end in the middle of the headers passes for the end of an answer
            return Exchange(cause="the answer is too slow")
        return Exchange(response.status_code, response.headers, content)
    except DeadlinePassed:
        return Exchange(cause="deadline passed before sending", untouched=True)
    except (failures.RequestException, OSError, ValueError) as error:
        return Exchange(cause=_named(error), untouched=_never_left(error))
    finally:
        _thread.deadline = _thread.watch = None
        if watch is not None:
            watch.over()


class _TooMuch(OSError):
    pass


def _read_all(response: requests.Response, until: float, cut_at: int | None) -> bytes:
    parts, size = [], 0
    for part in response.iter_content(65536):
        parts.append(part)
        size += len(part)
        if cut_at is not None and size >= cut_at:
            response.close()
            break
        if size > ANSWER_MOST or time.monotonic() > until:
            raise _TooMuch("the answer is too long or too slow")
    return b"".join(parts)


def _never_left(error: Exception) -> bool:
    if isinstance(error, failures.ConnectTimeout | failures.InvalidURL | failures.InvalidHeader |
                  failures.MissingSchema | failures.InvalidSchema):
        return True
    for cause in _causes(error):
        if isinstance(cause, NewConnectionError | NameResolutionError):
            return True
        # A certificate is judged in the handshake, before the request; other TLS errors can come later.
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
    return False


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting and len(found) < 20:
        one = waiting.pop()
        if one is None or one in found:
            continue
        found.append(one)
        waiting += [one.__cause__, one.__context__]
        if one.args and isinstance(one.args[0], BaseException):
            waiting.append(one.args[0])
        if isinstance(one, MaxRetryError):
            waiting.append(one.reason)
    return found


def _named(error: Exception) -> str:
    """The class names from outside in, without any text that could hold an address or a secret."""
    names = [type(cause).__name__ for cause in _causes(error)]
    return " < ".join(dict.fromkeys(names))[:200]
