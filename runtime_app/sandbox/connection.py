"""One connection to the sandbox: requests in their order, each answered or not as its delivery says."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from dataclasses import replace

from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.control import PREFIX, control
from runtime_app.sandbox.control_faults import Port
from runtime_app.sandbox.deliveries import Delivery
from runtime_app.sandbox.http11 import BadRequest, Reply, Request, read_request
from runtime_app.sandbox.orders import problem

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
BUFFER_MOST = 8 * 1024 * 1024


def _nobody(answered: str) -> None:
    """A control request is not in the log."""


class Connection(asyncio.Protocol):
    def __init__(self, sandbox: Sandbox, port: Port, among: set[Connection], serves_provider: bool) -> None:
        self._sandbox = sandbox
        self._port = port
        self._among = among
        self._serves_provider = serves_provider
        self._buffer = bytearray()
        self._request: Request | None = None
        self._log: Callable[[str], None] = _nobody
        self._closing = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._among.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._among.discard(self)
        if self._request is not None:
            self._log("closed")

    def data_received(self, data: bytes) -> None:
        if self._timer is not None and self._request is None:
            self._timer.cancel()
            self._timer = None
        self._buffer += data
        if len(self._buffer) > BUFFER_MOST:
            self.end()
        elif self._request is None:
            self._next()

    def end(self) -> None:
        """Close now; a connection that is answering a control request first says its answer."""
        if self._request is not None and self._request.path.startswith(PREFIX):
            self._closing = True
        elif self._transport is not None:
            # The loop closes an aborted socket only on its next turn; whoever asked for this is answered before.
            with contextlib.suppress(OSError):
                self._transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            self._transport.abort()

    def _next(self) -> None:
        while self._request is None and self._transport is not None and not self._transport.is_closing():
            try:
                request = read_request(self._buffer)
            except BadRequest as bad:
                self._closing = True
                self._send(problem(bad.status, bad.sentence))
                return
            if request is None:
                return
            self._request = request
            if request.path == PREFIX or request.path.startswith(PREFIX + "/"):
                delivery, self._log = control(self._sandbox, self._port, request), _nobody
            elif self._serves_provider:
                delivery, self._log = self._sandbox.handle(request)
            else:
                delivery, self._log = Delivery(reply=problem(404, "This port only serves /_sandbox.")), _nobody
            self._deliver(delivery)

    def _deliver(self, delivery: Delivery, *, late: bool = False) -> None:
        loop = asyncio.get_running_loop()
        if delivery.first is not None:
            delivery.first(lambda: self._deliver(replace(delivery, first=None), late=True))
        elif delivery.elsewhere is not None:
            done = loop.run_in_executor(None, delivery.elsewhere)
            done.add_done_callback(lambda f: self._finish(Delivery(reply=f.result()), late=True))
        elif delivery.after:
            self._timer = loop.call_later(delivery.after, self._waited, delivery)
        elif delivery.later is not None:
            self._deliver(delivery.later(), late=late)
        else:
            self._finish(delivery, late=late)

    def _waited(self, delivery: Delivery) -> None:
        self._timer = None
        if delivery.later is not None:
            # The deed is done even if the client has hung up meanwhile: the provider does not notice.
            self._deliver(delivery.later(), late=True)
            return
        self._finish(delivery, late=True)

    def _finish(self, delivery: Delivery, *, late: bool) -> None:
        """Put the delivery on the wire and go on with the next request, if the connection lives."""
        if self._transport is None:
            return
        if late:
            self._log("closed" if delivery.how == "hang" else replace(delivery, after=0).answered)
        request, self._request = self._request, None
        if delivery.how == "reset":
            self._reset()
        elif delivery.how in ("close", "hang") or delivery.reply is None:
            self._transport.close()
        elif delivery.how == "truncate":
            whole = delivery.reply.encoded()
            self._transport.write(whole[: len(whole) - max(1, len(delivery.reply.body) // 2)])
            self._transport.close()
        else:
            self._closing = self._closing or (request is not None and not request.keep_alive)
            self._send(delivery.reply)
            if delivery.how == "send_then_close" and self._transport is not None:
                self._timer = asyncio.get_running_loop().call_later(delivery.linger, self._transport.close)
        if late:
            self._next()

    def _send(self, reply: Reply) -> None:
        if self._transport is None:
            return
        self._transport.write(reply.encoded(keep_alive=not self._closing))
        if self._closing:
            self._transport.close()

    def _reset(self) -> None:
        if self._transport is not None:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._transport.abort()
