"""Real processes of the product for a test: `manage.py worker`, `manage.py clock` and uvicorn.

`Program` is one of them; `Crew` keeps several alive as the supervisor would.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.sandbox_process import ROOT, wait_until

PAUSE = 0.5  # seconds until a process that ended is started again, as a supervisor waits a little


@dataclass
class Program:
    """One process and its log. `environment` goes before what the test run's own environment says."""

    command: list[str]
    environment: Mapping[str, str]
    log: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    starts: int = 0
    _process: subprocess.Popen[bytes] | None = None

    def start(self, **more: str) -> None:
        """Start it; `more` is environment for this start only, such as an armed point."""
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT,
                env={**os.environ, **self.environment, **more}, **self.options,
            )
        self.starts += 1

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait(self, seconds: float = 30.0) -> int:
        """The exit code, when it has ended; negative for a signal."""
        assert self._process is not None
        return self._process.wait(seconds)

    def end(self, number: int = signal.SIGTERM, seconds: float = 15.0) -> None:
        """Send the signal and wait; what has not ended by then is killed."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)
        self._process = None

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def worker(environment: Mapping[str, str], log: Path) -> Program:
    return Program([sys.executable, "manage.py", "worker"], environment, log)


def clock(environment: Mapping[str, str], log: Path) -> Program:
    return Program([sys.executable, "manage.py", "clock"], environment, log)


@contextlib.contextmanager
def web(environment: Mapping[str, str], log: Path) -> Iterator[tuple[Program, str]]:
    """uvicorn on a port of its own, which it keeps over restarts, and its address; not started yet."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = "http://{}:{}".format(*listener.getsockname())
        options = ["--fd", str(listener.fileno()), "--no-access-log", "--timeout-graceful-shutdown", "1"]
        program = Program(
            [sys.executable, "-m", "uvicorn", "config.asgi:application", *options], environment, log,
            options={"pass_fds": [listener.fileno()]},
        )
        try:
            yield program, url
        finally:
            program.end()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


class Crew:
    """Programs that are started again whenever they end, until `close`."""

    def __init__(self, *programs: Program) -> None:
        self.programs = programs
        self._over = threading.Event()
        for program in programs:
            program.start()
        self._thread = threading.Thread(target=self._keep_alive, name="crew", daemon=True)
        self._thread.start()

    def _keep_alive(self) -> None:
        while not self._over.wait(PAUSE):
            for program in self.programs:
                if not program.alive:
                    program.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join(30)
        for program in self.programs:
            program.end()


def wait_for(true: Callable[[], Any], seconds: float, *programs: Program) -> Any:
    """As `wait_until`; when it does not become true, what these programs said last is told."""
    try:
        return wait_until(true, seconds)
    except AssertionError as late:
        last = "\n".join(f"--- {p.log.name}\n{p.said()[-2500:]}" for p in programs)
        raise AssertionError(f"{late}\n{last}") from None
