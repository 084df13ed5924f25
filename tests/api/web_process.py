"""A real web process on the test database, and clients that read its event streams as a browser does."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.db import connection

from tests.sandbox_process import ROOT, wait_until


@dataclass
class Web:
    url: str
    process: subprocess.Popen[bytes]

    def client(self, key: str | None = None, **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=30, trust_env=False, **options)


@contextlib.contextmanager
def running_web(env: Mapping[str, str] | None = None) -> Iterator[Web]:
    """uvicorn with the whole application; `env` goes before what the test run's environment says."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = "http://{}:{}".format(*listener.getsockname())
        given = {**os.environ, "DATABASE_URL": database_url(), "LOG_LEVEL": "WARNING", **(env or {})}
        options = ["--fd", str(listener.fileno()), "--no-access-log", "--log-level", "warning"]
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "config.asgi:application", *options, "--timeout-graceful-shutdown", "1"],
            env=given, cwd=ROOT, pass_fds=[listener.fileno()],
        )
    try:
        wait_until(lambda: process.poll() is not None or _answers(url), 60)
        assert process.poll() is None, "the web process did not start"
        yield Web(url, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(15)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def database_url() -> str:
    """Where the test database is, for another process."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    return parts._replace(path=f"/{connection.settings_dict['NAME']}").geturl()


@dataclass(frozen=True)
class Frame:
    id: str
    event: str
    data: dict[str, Any]


class Follower:
    """Reads one stream in a thread; `until` waits for what has come."""

    def __init__(self, web: Web, path: str, *, key: str | None = None, last: str | None = None, **options: Any) -> None:
        self.frames: list[Frame] = []
        self.id = last or ""  # as a browser keeps it, also from frames without data
        self.status = 0
        self.ended = threading.Event()
        self._client = web.client(key, **options)
        self._headers = {"Last-Event-ID": last} if last is not None else {}
        self._path = path
        self._open: queue.Queue[httpx.Response] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        self._response = self._open.get(timeout=30)
        self.status = self._response.status_code

    def _read(self) -> None:
        try:
            with self._client.stream("GET", self._path, headers=self._headers) as response:
                self._open.put(response)
                if response.status_code == 200:
                    self._frames(response.iter_lines())
        except (httpx.TransportError, httpx.StreamError, OSError, ValueError):
            pass  # closed, by either side
        finally:
            self.ended.set()

    def _frames(self, lines: Iterator[str]) -> None:
        event, data = "message", ""
        for line in lines:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self.id = value
            elif name == "event":
                event = value
            elif name == "data":
                data += value
            elif line == "":
                if data:
                    self.frames.append(Frame(self.id, event, json.loads(data)))
                event, data = "message", ""

    @property
    def seen(self) -> list[tuple[str, int]]:
        """(task, number) of every event that came, in the order of coming."""
        return [(f.data["task_id"], f.data["seq"]) for f in self.frames if f.event == "message"]

    def until(self, true: Callable[[], Any]) -> Any:
        return wait_until(true, 30)

    def opened(self) -> str:
        """Wait until the stream has said where it is, and return that; from there on it misses nothing."""
        return str(self.until(lambda: self.id))

    def sees(self, many: int) -> list[tuple[str, int]]:
        """Wait until so many events have come."""
        self.until(lambda: len(self.seen) >= many)
        return self.seen

    def meets(self, task: object, seq: int) -> None:
        self.until(lambda: (str(task), seq) in self.seen)

    def close(self) -> None:
        """Go away, as a client does whose cable is pulled: the socket is shut, whatever is on its way."""
        stream = self._response.extensions.get("network_stream")
        sock = stream.get_extra_info("socket") if stream is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        self._client.close()
