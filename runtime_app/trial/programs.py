"""Which processes a trial consists of."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from runtime_app.trial.places import PROJECT, Places
from runtime_app.trial.postgres import Postgres
from runtime_app.trial.redis_server import RedisServer
from runtime_app.trial.supervision import Program

SERVERS = ("postgres", "redis")
WORK = ("web", "worker", "clock")
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the trial's processes meet. `database` is empty while the embedded PostgreSQL is to be used."""

    database: str
    redis: str
    web_port: int
    sandbox_port: int
    control_port: int
    bank_port: int

    @property
    def web(self) -> str:
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def sandbox(self) -> str:
        return f"http://127.0.0.1:{self.sandbox_port}"

    @property
    def bank(self) -> str:
        return f"http://127.0.0.1:{self.bank_port}"

    @property
    def sandbox_control(self) -> str:
        """The sandbox's second door, which stays open while a fault closes the first."""
        return f"http://127.0.0.1:{self.control_port}"


def stack_programs(
    places: Places, addresses: Addresses, postgres: Postgres | None, redis: RedisServer | None
) -> list[Program]:
    """In the order of starting. The servers are among them only when they are the trial's own."""
    python, manage = sys.executable, [sys.executable, str(PROJECT / "manage.py")]
    sandbox = ["--port", str(addresses.sandbox_port), "--control-port", str(addresses.control_port)]
    web = ["config.asgi:application", "--host", "127.0.0.1", "--port", str(addresses.web_port)]
    # Event streams stay open for ever; three seconds are enough for everything else.
    web += ["--no-access-log", "--timeout-graceful-shutdown", "3"]
    programs = []
    if postgres:
        user = postgres.account.name if postgres.account else None
        programs.append(
            Program(
                "postgres", postgres.command(), 10, stop_signal="INT", stop_seconds=30, user=user,
                folder=Path("/"),  # the user may be one that cannot enter the project's
            )
        )
    if redis:
        programs.append(Program("redis", redis.command(), 10))
    programs.append(
        Program("sandbox", [python, "-m", "runtime_app.sandbox", *sandbox, "--db", str(places.sandbox)], 20)
    )
    # The second provider of the trial, a bank that others wrote. Its day ends late, so that a trial sees bookings.
    bank = ["--port", str(addresses.bank_port), "--db", str(places.bank), "--cutoff", "23:59", "--quiet"]
    programs.append(Program("bank", [python, "-m", "mockbank", *bank], 20))
    programs.append(Program("web", [python, "-m", "uvicorn", *web], 30))
    programs.append(Program("worker", [*manage, "worker"], 40, copies=WORKERS))
    programs.append(Program("clock", [*manage, "clock"], 50))
    return programs
