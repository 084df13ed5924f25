"""What lies where in the trial's folder, and the lock that says that a trial runs there."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.redis_server import SOCKET_NAME_MOST

PROJECT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class Places:
    """Paths under VAR. Whatever holds a key or a password has mode 600."""

    var: Path

    @property
    def contract(self) -> Path:
        return self.var / "trial.json"

    @property
    def keys(self) -> Path:
        return self.var / "keys.json"

    @property
    def environment(self) -> Path:
        return self.var / "stack.env"

    @property
    def story_told(self) -> Path:
        return self.var / "story.told"

    @property
    def postgres(self) -> Path:
        return self.var / "postgres"

    @property
    def redis(self) -> Path:
        return self.var / "redis"

    @property
    def bank(self) -> Path:
        return self.var / "bank.sqlite3"

    @property
    def sandbox(self) -> Path:
        return self.var / "sandbox.sqlite3"

    @property
    def logs(self) -> Path:
        return self.var / "log"

    @property
    def supervisor_config(self) -> Path:
        return self.var / "supervisord.conf"

    @property
    def supervisor_socket(self) -> Path:
        beside = self.var / "supervisor.sock"
        if len(os.fsencode(beside)) + 20 <= SOCKET_NAME_MOST:  # supervisor binds a longer name first, then renames
            return beside
        folder = Path(tempfile.gettempdir()) / f"countersign-{zlib.crc32(os.fsencode(self.var)):x}-supervisor"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / "supervisor.sock"

    def make(self) -> None:
        """Make the folders. Raises TrialFailure when VAR cannot be written."""
        try:
            if not self.var.exists():
                self.var.mkdir(parents=True)
                # As root, PostgreSQL's own user must get through to its folder; nobody may list.
                self.var.chmod(0o711 if os.geteuid() == 0 else 0o700)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.var):
                pass
        except OSError as error:
            raise TrialFailure(
                f"The folder {self.var} cannot be written ({error.strerror}): choose another with VAR=…"
            ) from error


def write_private(path: Path, text: str) -> None:
    """Put a whole file of mode 600 in place at once."""
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    unfinished.rename(path)


def read_json(path: Path) -> Any:
    """What the file says; None when it is not there or not whole."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write_environment(path: Path, values: Mapping[str, str]) -> None:
    """What the settings read when a command is run beside the trial, such as `manage.py check_invariants`."""
    write_private(path, "".join(f"{name}={json.dumps(value)}\n" for name, value in values.items()))


class Lock:
    """Held by the one trial that runs in a folder; the system releases it however that process ends."""

    def __init__(self, places: Places) -> None:
        self._path = places.var / "up.lock"
        self._file: IO[str] | None = None

    def take(self) -> bool:
        """False when somebody else holds it."""
        file = open(self._path, "a+", encoding="utf-8")  # noqa: SIM115 - kept open as long as the lock is held
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None

    def holder(self) -> int | None:
        """The process that wrote its number there last, which is the holder while `take` answers False."""
        try:
            return int(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
