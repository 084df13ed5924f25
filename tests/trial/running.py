"""A started trial as its user sees it: a process at a terminal, a folder, and trial.json."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from runtime_app.trial.places import PROJECT
from runtime_app.trial.processes import MARK, stack_processes
from runtime_app.trial.waiting import wait_for

NOT_GIVEN = ("DATABASE_URL", "REDIS_URL", "COUNTERSIGN_ENVIRONMENT", "COUNTERSIGN_VAR", MARK)


def clean_environment(**more: str) -> dict[str, str]:
    """The environment of somebody who has not set anything, unlike that of the test run."""
    return {name: value for name, value in os.environ.items() if name not in NOT_GIVEN} | more


def up_command(var: Path, *more: str, port: int = 0) -> list[str]:
    return [sys.executable, str(PROJECT / "manage.py"), "up", "--port", str(port), "--var", str(var), *more]


@dataclass
class Trial:
    """One `manage.py up`; `output` is what its terminal shows."""

    var: Path
    process: subprocess.Popen[bytes]
    output: Path

    @classmethod
    def start(cls, var: Path, *, port: int = 0, **environment: str) -> Trial:
        output = var.with_name(var.name + ".terminal")
        with open(output, "ab") as terminal:
            process = subprocess.Popen(
                up_command(var, port=port),
                stdin=subprocess.DEVNULL,
                stdout=terminal,
                stderr=subprocess.STDOUT,
                env=clean_environment(**environment),
                start_new_session=True,
            )
        return cls(var, process, output)

    def contract(self) -> dict[str, Any]:
        """What trial.json says once it is there."""
        file = self.var / "trial.json"

        def there() -> bool:
            assert self.process.poll() is None, self.output.read_text(errors="replace")
            return file.exists()

        assert wait_for(there, seconds=240), self.output.read_text(errors="replace")
        return dict(json.loads(file.read_text()))

    def interrupt(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(90)

    def kill_everything(self) -> None:
        """SIGKILL to every process at once, as when a machine loses its power."""
        for process in [psutil.Process(self.process.pid), *self.left()]:
            process.kill()
        self.process.wait(30)

    def left(self) -> list[psutil.Process]:
        """What still runs of this trial."""
        folders = [(self.var / "postgres").resolve() / "data", self.var / "redis"]
        return [one for one in stack_processes(self.var, folders) if one.pid != self.process.pid]
