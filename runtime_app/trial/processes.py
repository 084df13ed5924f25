"""Our own processes: finding what an earlier, killed start left behind, and ending it."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable
from pathlib import Path

import psutil

MARK = "COUNTERSIGN_STACK"  # every process of a stack carries this variable, with the stack's folder as its value
SERVERS = ("postgres", "redis-server", "valkey-server")


def stack_processes(var: Path, data_folders: Iterable[Path] = ()) -> list[psutil.Process]:
    """Every living process of the stack in `var`, except this one and those that started it.

    Servers rewrite their own environment while they run, so they are known by the data folder they stand in.
    """
    folders = {str(folder.resolve()) for folder in data_folders}
    mine = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        if process.pid in mine:
            continue
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            marked = process.environ().get(MARK) == str(var)
            if marked or (process.name().startswith(SERVERS) and process.cwd() in folders):
                found.append(process)
    return found


def end(processes: list[psutil.Process], *, seconds: float = 20.0) -> int:
    """Ask the processes to end, kill those that do not within `seconds`; how many there were."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            # PostgreSQL's quick stop is SIGINT: SIGTERM would wait for its clients.
            process.send_signal(2 if process.name().startswith("postgres") else 15)
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=10)
    return len(processes)


def end_stack(var: Path, data_folders: Iterable[Path] = ()) -> int:
    """End whatever still runs of the stack in `var`; how many processes that were.

    Its supervisor is killed first, since it would start the others again, and the others then end side by side.
    """
    folders = list(data_folders)
    found = stack_processes(var, folders)
    supervisors = []
    for process in found:
        with contextlib.suppress(psutil.Error):
            if any("supervisord" in part for part in process.cmdline()):
                process.kill()
                supervisors.append(process)
    psutil.wait_procs(supervisors, timeout=10)
    end(stack_processes(var, folders))
    return len(found)


def port_is_free(port: int, host: str = "127.0.0.1") -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(host: str = "127.0.0.1", *, prefer: int = 0) -> int:
    """`prefer` when nobody listens there, else a port that the system says is free."""
    if prefer and port_is_free(prefer, host):
        return prefer
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
