"""The supervisor: its configuration, its start, and what it says about the processes it looks after."""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import os
import shlex
import signal
import subprocess
import sys
import xmlrpc.client
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.xmlrpc import SupervisorTransport

from runtime_app.trial.failure import TrialFailure, complaint
from runtime_app.trial.places import PROJECT, Places
from runtime_app.trial.waiting import wait_for

PR_SET_PDEATHSIG = 1
UNREACHABLE = (OSError, http.client.HTTPException, xmlrpc.client.Error)


@dataclass(frozen=True, slots=True)
class Program:
    """One line of work under the supervisor. `order` is that of starting; stopping goes the other way."""

    name: str
    command: Sequence[str]
    order: int
    copies: int = 1
    user: str | None = None
    folder: Path = PROJECT
    stop_signal: str = "TERM"
    stop_seconds: int = 10

    def section(self, places: Places) -> str:
        lines = {
            "command": shlex.join(self.command),
            "directory": str(self.folder),
            "process_name": "%(program_name)s" + ("-%(process_num)s" if self.copies > 1 else ""),
            "numprocs": str(self.copies),
            "numprocs_start": "1",
            "priority": str(self.order),
            "autostart": "false",
            "autorestart": "true",
            # Django alone takes seconds to import here. What dies sooner is started again after 1 s, 2 s, 3 s …
            "startsecs": "8",
            "startretries": "60",
            "stopsignal": self.stop_signal,
            "stopwaitsecs": str(self.stop_seconds),
            "killasgroup": "true",
            "redirect_stderr": "true",
            "stdout_logfile": str(places.logs / f"{self.name}{'-%(process_num)s' if self.copies > 1 else ''}.log"),
            "stdout_logfile_maxbytes": "5MB",
            "stdout_logfile_backups": "1",
        }
        if self.user:
            lines["user"] = self.user
        return section(f"program:{self.name}", lines, expanding={"process_name", "stdout_logfile"})


def section(title: str, lines: Mapping[str, str], expanding: set[str] = frozenset()) -> str:  # type: ignore[assignment]
    body = "".join(f"{k} = {v if k in expanding else v.replace('%', '%%')}\n" for k, v in lines.items())
    return f"[{title}]\n{body}\n"


def configuration(places: Places, programs: Sequence[Program]) -> str:
    supervisord = {
        "nodaemon": "true",
        "logfile": str(places.logs / "supervisord.log"),
        "logfile_maxbytes": "5MB",
        "logfile_backups": "1",
        "pidfile": str(places.var / "supervisord.pid"),
        "childlogdir": str(places.logs),
        "identifier": "countersign",
        "umask": "077",
        **({"user": "root"} if os.geteuid() == 0 else {}),
    }
    control = {"file": str(places.supervisor_socket), "chmod": "0700"}
    factory = {"supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"}
    head = section("supervisord", supervisord) + section("unix_http_server", control)
    return head + section("rpcinterface:supervisor", factory) + "".join(p.section(places) for p in programs)


class Supervisor:
    """One running supervisord."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def _server(self) -> xmlrpc.client.ServerProxy:
        """A fresh connection: the transport cannot be used again once a call on it went wrong."""
        address = f"unix://{self._places.supervisor_socket}"
        return xmlrpc.client.ServerProxy("http://supervisor", transport=SupervisorTransport(None, None, address))

    def start(self, environment: Mapping[str, str]) -> None:
        self._places.supervisor_socket.unlink(missing_ok=True)
        with open(self._places.logs / "supervisord.out", "wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(self._places.supervisor_config)],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches `up`, which stops everything in order
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            )

        def answers() -> bool:
            if not self.alive:
                said = (self._places.logs / "supervisord.out").read_text(errors="replace").strip().splitlines()
                raise TrialFailure(f"The supervisor did not start: {said[-1] if said else 'it said nothing'}")
            with contextlib.suppress(*UNREACHABLE):
                return bool(self._server.supervisor.getState())
            return False

        if not wait_for(answers, seconds=30):
            raise TrialFailure(f"The supervisor did not answer; its log is {self._places.logs / 'supervisord.log'}")

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start_program(self, name: str) -> None:
        """Start every copy of the program, without waiting for it to be ready."""
        for process in self.processes():
            if process["group"] == name and process["statename"] not in ("RUNNING", "STARTING"):
                self._start(process)

    def _start(self, process: Mapping[str, Any]) -> None:
        # What goes wrong here is seen by whoever waits for the program.
        with contextlib.suppress(*UNREACHABLE):
            self._server.supervisor.startProcess(f"{process['group']}:{process['name']}", False)

    def processes(self) -> list[dict[str, Any]]:
        """What supervisord knows of each process: name, group, statename, pid, spawnerr, …; empty when it is dead."""
        try:
            answer = self._server.supervisor.getAllProcessInfo()
        except UNREACHABLE:
            return []
        return [dict(one) for one in answer if isinstance(one, dict)] if isinstance(answer, list) else []

    def knows(self, name: str) -> bool:
        return any(process["group"] == name for process in self.processes())

    def up(self, name: str) -> bool:
        """Whether every copy of the program has a living process."""
        copies = [process for process in self.processes() if process["group"] == name]
        return bool(copies) and all(process["pid"] for process in copies)

    def failed(self, name: str) -> str | None:
        """Why a program does not stay up, from its log; None while all is well."""
        for process in self.processes():
            if process["group"] == name and process["statename"] in ("BACKOFF", "FATAL", "EXITED"):
                log = Path(process["stdout_logfile"])
                said = log.read_text(errors="replace") if log.exists() else process["spawnerr"]
                return f"{complaint(said)} (its log is {log})"
        return None

    def revive(self) -> None:
        """Start again what the supervisor had given up."""
        for process in self.processes():
            if process["statename"] == "FATAL":
                self._start(process)

    def stop(self, *phases: Sequence[str], seconds: float = 60.0) -> None:
        """Stop the programs of each phase side by side, one phase after the other, then the supervisor itself."""
        if self._process is None:
            return
        for names in phases:
            self._stop_programs(names)
        if self.alive:
            self._process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def _stop_programs(self, names: Sequence[str]) -> None:
        def living() -> list[dict[str, Any]]:
            return [process for process in self.processes() if process["group"] in names and process["pid"]]

        for process in living():
            with contextlib.suppress(*UNREACHABLE):
                self._server.supervisor.stopProcess(f"{process['group']}:{process['name']}", False)
        wait_for(lambda: not living(), seconds=40)


def _end_with_parent() -> None:
    """On Linux the supervisor is told to end when `up` is killed, so that nothing outlives it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
