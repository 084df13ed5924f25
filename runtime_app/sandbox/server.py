"""The sandbox's listening ports. The main one can be closed by a fault, so that connections are refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket

from runtime_app.sandbox.app import Sandbox
from runtime_app.sandbox.connection import Connection


class Listener:
    """One port. `serves_provider` is false on the control port, which only knows `/_sandbox`."""

    def __init__(self, sandbox: Sandbox, host: str, port: int, *, main: Listener | None = None) -> None:
        self._sandbox = sandbox
        self._host = host
        self._main = main
        self._socket: socket.socket | None = None
        self._reopen: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self.port = port
        self.connections: set[Connection] = set()

    def listen(self) -> None:
        """Bind and take connections from now on; raises OSError when the port is taken."""
        if self._socket is not None:
            return
        self._socket = socket.create_server((self._host, self.port), backlog=512)
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        asyncio.get_running_loop().add_reader(self._socket, self._take, self._socket)

    def refuse(self, seconds: float | None) -> None:
        """Close the port and every connection that came through it, until `accept` or for `seconds`."""
        self._forget_timer()
        self.close()
        if seconds is not None:
            self._reopen = asyncio.get_running_loop().call_later(seconds, self.accept)

    def accept(self) -> None:
        self._forget_timer()
        self.listen()

    def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        for connection in list(self.connections):
            connection.end()

    def _forget_timer(self) -> None:
        if self._reopen is not None:
            self._reopen.cancel()
            self._reopen = None

    def _take(self, listener: socket.socket) -> None:
        for _ in range(64):
            try:
                accepted, _address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            accepted.setblocking(False)
            task = asyncio.get_running_loop().create_task(self._attach(accepted))
            self._tasks.add(task)  # the loop itself keeps tasks only weakly
            task.add_done_callback(self._tasks.discard)

    async def _attach(self, accepted: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Connection(self._sandbox, self._main or self, self.connections, self._main is None), accepted
        )


async def serve(path: str, host: str, port: int, control_port: int) -> None:
    """Serve until SIGTERM or SIGINT. One line of JSON on stdout says where, once both ports answer."""
    sandbox = Sandbox(path, asyncio.get_running_loop())
    main = Listener(sandbox, host, port)
    beside = Listener(sandbox, host, control_port, main=main)
    main.listen()
    beside.listen()
    stop = asyncio.Event()
    for wanted in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(wanted, stop.set)
    print(json.dumps({"url": f"http://{host}:{main.port}", "control_url": f"http://{host}:{beside.port}"}), flush=True)
    with contextlib.suppress(asyncio.CancelledError):
        await stop.wait()
    main.close()
    beside.close()
    sandbox.close()
