"""A process that has imported the product and forks a child for each act, so that a crash costs milliseconds.

`Nursery` is the tests' side. The process itself is started as `python -m tests.reliability.nursery`, reads one order a
line on its standard input and never opens a database connection, so that every child opens its own.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class End:
    """How an act went: `how` is done, raised, killed, stopped or running; `told` is what it returned."""

    how: str
    told: Any = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class Child:
    pid: int
    told: Path
    log: Path


class Nursery:
    """Not thread-safe: one thread asks one nursery."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.nursery"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, cwd=ROOT, env={**os.environ, **environment},
        )
        if self._answer(60.0) != "ready":
            raise RuntimeError("the nursery did not start")

    def _answer(self, seconds: float) -> Any:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            raise RuntimeError("the nursery does not answer")
        return json.loads(line)

    def _ask(self, seconds: float = 30.0, **order: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer(seconds)

    def start(
        self, act: str, *, point: str = "", points_log: Path | None = None, mutants: tuple[str, ...] = (), **said: Any
    ) -> Child:
        """Let a child do `tests.reliability.acts.<act>(**said)`; `crowd.ask` is the act `ask` of the module `crowd`.
        `point` is `name:nth:SIGNAL`, as in the product."""
        number = self._ask(act=act, said=said, point=point, points_log=str(points_log or ""), mutants=list(mutants))
        return Child(number, self._folder / f"{number}.json", self._folder / f"{number}.log")

    def wait(self, child: Child, seconds: float = 30.0) -> End:
        """How the child's act went; `running` when it is still at it after so many seconds."""
        how = self._ask(seconds + 30.0, wait=child.pid, most=seconds)
        told = json.loads(child.told.read_text()) if child.told.exists() else None
        log = child.log.read_text(errors="replace")[-3000:] if how != "done" and child.log.exists() else ""
        return End(how, told, log)

    def do(self, act: str, *, seconds: float = 60.0, **said: Any) -> Any:
        """Have the act done and return what it told; an act that does not get done fails the test."""
        end = self.wait(self.start(act, **said), seconds)
        if end.how != "done":
            raise AssertionError(f"{act}: {end.how}\n{end.log}")
        return end.told

    def close(self) -> None:
        """End the nursery and with it every child."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)


def _main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    folder = Path(os.environ["NURSERY_FOLDER"])
    import django

    django.setup()
    importlib.import_module("tests.reliability.acts").warm_up()
    _say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _say(_wait(order["wait"], order["most"]))
        else:
            _say(_fork(folder, order))


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _fork(folder: Path, order: dict[str, Any]) -> int:
    nursery = os.getpid()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == nursery:
            _be_a_child(folder, order)
            code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _be_a_child(folder: Path, order: dict[str, Any]) -> None:
    from runtime_app import points
    from tests.reliability import mutants

    log = os.open(folder / f"{os.getpid()}.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((0, nothing), (1, log), (2, log)):
        os.dup2(new, old)
    points.arm(order["point"], order["points_log"])
    for name in order["mutants"]:
        mutants.MUTANTS[name]()
    module, _, name = order["act"].rpartition(".")
    act: Callable[..., Any] = getattr(importlib.import_module(f"tests.reliability.{module or 'acts'}"), name)
    told = json.dumps(act(**order["said"]), default=str)
    place = folder / f"{os.getpid()}.json"
    place.with_suffix(".part").write_text(told)
    place.with_suffix(".part").rename(place)


def _wait(pid: int, seconds: float) -> str:
    until = time.monotonic() + seconds
    pause = 0.0005
    while True:
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if found:
            if os.WIFSTOPPED(status):
                return "stopped"
            if os.WIFSIGNALED(status):
                return "killed"
            return "done" if os.WEXITSTATUS(status) == 0 else "raised"
        if time.monotonic() > until:
            return "running"
        time.sleep(pause)
        pause = min(0.01, pause * 1.3)


if __name__ == "__main__":
    _main()
