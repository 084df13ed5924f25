"""A process that does what it is told at the same moment as another one: `python -m tests.approvals.racer`.

Each line on its standard input is a list of acts. Before each the two racers meet at a socket that they share, so that
both begin within microseconds, on connections of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Act = tuple[str, Mapping[str, Any]]


@dataclass
class Racers:
    """Two processes. `race` has each do its acts, the first with the first and so on; what came of each."""

    processes: tuple[subprocess.Popen[str], subprocess.Popen[str]]

    def race(self, one: Sequence[Act], two: Sequence[Act]) -> list[tuple[str, str]]:
        for process, acts in zip(self.processes, (one, two), strict=True):
            assert process.stdin is not None
            process.stdin.write(json.dumps(acts) + "\n")
            process.stdin.flush()
        answers = []
        for process in self.processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "a racer has died"
            answers.append(json.loads(line))
        return list(zip(*answers, strict=True))


@contextlib.contextmanager
def running(environment: Mapping[str, str]) -> Iterator[Racers]:
    ends = socket.socketpair()
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.approvals.racer", str(end.fileno())], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, pass_fds=[end.fileno()], env={**os.environ, **environment},
        )
        for end in ends
    ]
    for end in ends:
        end.close()
    try:
        yield Racers((processes[0], processes[1]))
    finally:
        for process in processes:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.wait(20)
            process.stdout.close()


def _main(meet: socket.socket) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from tests.approvals import racing

    for line in sys.stdin:
        told = []
        for name, said in json.loads(line):
            ready = racing.prepare(name, said)
            meet.sendall(b"x")
            meet.recv(1)
            told.append(racing.outcome(ready))
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(socket.socket(fileno=int(sys.argv[1])))
