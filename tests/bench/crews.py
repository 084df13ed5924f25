"""Two worker processes of one kind: ours behind RQ, or the floor's."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator

from redis import Redis
from rq import Worker

from tests.bench.rig import PROJECT, until

SIZE = 2


@contextlib.contextmanager
def processes(*command: str, piped: bool = False) -> Iterator[list[subprocess.Popen[str]]]:
    """SIZE processes of this command, perhaps with pipes to and from them; ended at the end."""
    pipe = subprocess.PIPE if piped else None
    started = [
        subprocess.Popen([sys.executable, *command], cwd=PROJECT, text=True, stdin=pipe, stdout=pipe)
        for _ in range(SIZE)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


@contextlib.contextmanager
def ours() -> Iterator[list[int]]:
    """The pids of two real workers that wait for a ring."""
    with Redis.from_url(os.environ["REDIS_URL"]) as redis, processes("manage.py", "worker") as started:
        pids = [process.pid for process in started]
        until(lambda: {worker.pid for worker in Worker.all(connection=redis)} >= set(pids), 60)
        yield pids


class FloorCrew:
    """Two of the floor's workers; they wait to be told."""

    def __init__(self, started: list[subprocess.Popen[str]]) -> None:
        self._started = started
        self.pids = [process.pid for process in started]
        self.hear()

    def go(self) -> None:
        for process in self._started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    def hear(self) -> list[dict[str, int]]:
        """One answer of each; waits for it."""
        heard = []
        for process in self._started:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"a worker of the floor ended with {process.wait()}")
            heard.append(json.loads(line))
        return heard


@contextlib.contextmanager
def floor() -> Iterator[FloorCrew]:
    with processes("-m", "tests.bench.floor", piped=True) as started:
        yield FloorCrew(started)
