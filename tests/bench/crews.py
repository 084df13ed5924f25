"""Two worker processes of one kind: ours behind RQ, the floor's, or a peer's."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from redis import Redis
from rq import Queue, Worker

from tests.bench.rig import PROJECT, until

SIZE = 2


@contextlib.contextmanager
def processes(
    *command: str, piped: bool = False, python: str = sys.executable
) -> Iterator[list[subprocess.Popen[str]]]:
    """SIZE Python processes of this command, perhaps with pipes to and from them; ended at the end."""
    pipe = subprocess.PIPE if piped else None
    started = [
        subprocess.Popen([python, *command], cwd=PROJECT, text=True, stdin=pipe, stdout=pipe) for _ in range(SIZE)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
            process.send_signal(signal.SIGCONT)  # one that was paused could not end
        for process in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


@contextlib.contextmanager
def rq_workers(*command: str) -> Iterator[list[int]]:
    """The pids of two RQ workers that wait for a ring."""
    with Redis.from_url(os.environ["REDIS_URL"]) as redis, processes(*command) as started:
        pids = [process.pid for process in started]
        until(lambda: {worker.pid for worker in Worker.all(connection=redis)} >= set(pids), 60)
        yield pids


def rest() -> None:
    """Wait until no RQ worker works and nobody is rung for: what is measured next is nobody else's."""
    with Redis.from_url(os.environ["REDIS_URL"]) as redis:

        def quiet() -> bool:
            waiting = sum(queue.count for queue in Queue.all(connection=redis))
            return not waiting and all(worker.get_state() == "idle" for worker in Worker.all(connection=redis))

        until(quiet, 60)


def ours() -> contextlib.AbstractContextManager[list[int]]:
    """Two real workers of the product."""
    return rq_workers("manage.py", "worker")


def heard(process: subprocess.Popen[str]) -> None:
    """Wait for the process to say a line."""
    assert process.stdout is not None
    if not process.stdout.readline():
        raise RuntimeError(f"a worker ended with {process.wait()}")


@dataclass(frozen=True, slots=True)
class FloorCrew:
    """Two of the floor's workers; they wait to be told."""

    started: list[subprocess.Popen[str]]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.started]

    def drain(self) -> None:
        """Let both drain what is due; returns when both are done."""
        for process in self.started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in self.started:
            heard(process)


@contextlib.contextmanager
def floor(module: str = "tests.bench.floor") -> Iterator[FloorCrew]:
    with processes("-m", module, piped=True) as started:
        for process in started:
            heard(process)
        yield FloorCrew(started)
