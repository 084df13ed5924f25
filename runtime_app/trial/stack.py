"""The whole trial in one folder: started in order, looked after by one supervisor, stopped without a trace."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from runtime_app.trial import processes
from runtime_app.trial.failure import TrialFailure, complaint
from runtime_app.trial.places import PROJECT, Lock, Places, read_json, write_environment, write_private
from runtime_app.trial.postgres import Postgres
from runtime_app.trial.programs import SERVERS, WORK, WORKERS, Addresses, stack_programs
from runtime_app.trial.readiness import Readiness
from runtime_app.trial.redis_server import RedisServer
from runtime_app.trial.story import tell
from runtime_app.trial.supervision import Supervisor, configuration
from runtime_app.trial.waiting import wait_for


def given_by_person(name: str) -> str | None:
    """A variable as it was when this process started: Django's settings add those of a trial that ran before."""
    try:
        return psutil.Process().environ().get(name) or None
    except psutil.Error:
        return os.environ.get(name) or None


class Stack:
    """One trial. `say` gets the lines for the terminal; every failure is a TrialFailure with one sentence."""

    def __init__(self, var: Path, *, port: int, say: Callable[[str], None], story: bool = True) -> None:
        self.places = Places(var.resolve())
        self._say = say
        self._lock = Lock(self.places)
        self._supervisor = Supervisor(self.places)
        self._ready = Readiness(self._supervisor, self.places)
        self._postgres = None if given_by_person("DATABASE_URL") else Postgres(self.places.postgres)
        self._redis = None if given_by_person("REDIS_URL") else RedisServer(self.places.redis)
        self._port = port
        self._story = story

    @contextmanager
    def running(self) -> Iterator[dict[str, Any]]:
        """The started trial's contract; everything is stopped when the block ends, however it ends."""
        self.places.make()
        if not self._lock.take():
            raise TrialFailure(
                f"A trial already runs in {self.places.var} (process {self._lock.holder()}): "
                "stop it with make down, or choose another folder with VAR=…"
            )
        try:
            self.places.contract.unlink(missing_ok=True)
            yield self._start()
        finally:
            self._stop()
            self._lock.release()

    def watch(self) -> None:
        """Look after the running trial until the supervisor is gone, which is a failure."""
        while self._supervisor.alive:
            time.sleep(1)
            self._supervisor.revive()
        raise TrialFailure("The supervisor was killed, so everything was stopped; make up starts it again.")

    def _start(self) -> dict[str, Any]:
        left = processes.end_stack(self.places.var, self._data_folders())
        if left:
            self._say(f"Ended {left} processes that an earlier start had left behind.")
        addresses = self._choose_addresses()
        programs = stack_programs(self.places, addresses, self._prepared_postgres(), self._redis)
        write_private(self.places.supervisor_config, configuration(self.places, programs))
        environment = self._environment(addresses)
        with self._step("Starting PostgreSQL and Redis" if self._postgres or self._redis else "Reaching the servers"):
            self._supervisor.start(environment)
            self._wait_for_servers(environment)
        with self._step("Migrating the database"):
            self._manage(environment, "migrate", "--no-input", "--verbosity=0")
        with self._step("Starting the two providers"):
            self._supervisor.start_program("sandbox")
            self._supervisor.start_program("bank")
            self._ready.http("sandbox", f"{addresses.sandbox_control}/_sandbox")
            self._ready.http("bank", f"{addresses.bank}/_mock/health")
        for name in WORK:
            self._supervisor.start_program(name)  # they take seconds to import, which the seeding can use
        with self._step("Seeding tenants, people and orders"):
            seeded = json.loads(self._manage(environment, "seed_trial"))
        with self._step("Starting web, workers and clock"):
            self._ready.http("web", f"{addresses.web}/readyz")
            self._ready.work(addresses.redis, workers=WORKERS)
        contract = {"url": addresses.web, "sandbox_url": addresses.sandbox_control, "pid": os.getpid(), **seeded}
        if self._story and not self.places.story_told.exists():
            with self._step("Playing a short story, so that no page is empty"):
                tell(contract)
            self.places.story_told.touch()
        write_private(self.places.contract, json.dumps(contract, indent=1, ensure_ascii=False) + "\n")
        return contract

    def _stop(self) -> None:
        self.places.contract.unlink(missing_ok=True)
        self._supervisor.stop((*WORK, "sandbox", "bank"), SERVERS)
        processes.end_stack(self.places.var, self._data_folders())
        for leftover in (self.places.supervisor_socket, self.places.environment):
            leftover.unlink(missing_ok=True)

    def stop_other(self) -> bool:
        """Stop the trial that another process runs here, or what a killed one left behind; False if there is none."""
        if not self.places.var.exists():
            return False
        if self._lock.take():
            found = processes.end_stack(self.places.var, self._data_folders())
            self.places.contract.unlink(missing_ok=True)
            self._lock.release()
            return found > 0
        with suppress(psutil.Error):
            psutil.Process(self._lock.holder()).terminate()
        if not wait_for(self._lock.take, seconds=90):
            raise TrialFailure(f"The trial in {self.places.var} (process {self._lock.holder()}) does not stop.")
        self._lock.release()
        return True

    def remove(self) -> None:
        """Delete the servers' files, some of which may lie outside VAR; the trial must be stopped."""
        for server in (self._postgres, self._redis):
            if server:
                server.remove()

    def _data_folders(self) -> list[Path]:
        postgres = [self._postgres.data] if self._postgres else []
        return [*postgres, *([self._redis.home] if self._redis else [])]

    def _choose_addresses(self) -> Addresses:
        port = self._port or processes.free_port()
        if not processes.port_is_free(port):
            raise TrialFailure(f"Port {port} is taken by another program: choose another with PORT=…")
        sandbox = processes.free_port(prefer=port + 1 if port < 65000 else 0)
        control = processes.free_port(prefer=port + 2 if port < 65000 else 0)
        return Addresses(
            database=given_by_person("DATABASE_URL") or "",
            redis=given_by_person("REDIS_URL") or (self._redis.url if self._redis else ""),
            web_port=port,
            sandbox_port=sandbox,
            control_port=control,
            bank_port=processes.free_port(prefer=port + 3 if port < 65000 else 0),
        )

    def _prepared_postgres(self) -> Postgres | None:
        if self._postgres:
            with self._step("Preparing PostgreSQL's folder"):
                self._postgres.prepare()
                self._postgres.forget_stale_locks()
        return self._postgres

    def _environment(self, addresses: Addresses) -> dict[str, str]:
        """What every process of the stack is started with; also written for commands run beside it."""
        database = self._postgres.url() if self._postgres else addresses.database
        keys = read_json(self.places.keys) or {}
        if "secret_key" not in keys:
            keys["secret_key"] = secrets.token_urlsafe(48)
            write_private(self.places.keys, json.dumps(keys, indent=1) + "\n")
        told = {
            "DATABASE_URL": database,
            "REDIS_URL": addresses.redis,
            "SECRET_KEY": keys["secret_key"],
            "SANDBOX_URL": addresses.sandbox,
            "SANDBOX_CONTROL_URL": addresses.sandbox_control,
            "BANK_URL": addresses.bank,
            "COUNTERSIGN_URL": addresses.web,
            "COUNTERSIGN_ENVIRONMENT": "trial",
        }
        write_environment(self.places.environment, told)
        told |= {"COUNTERSIGN_VAR": str(self.places.var), "COUNTERSIGN_CLOCK_DATABASE_URL": database}
        return {**os.environ, **told, processes.MARK: str(self.places.var), "PYTHONUNBUFFERED": "1"}

    def _wait_for_servers(self, environment: dict[str, str]) -> None:
        for name in SERVERS:
            self._supervisor.start_program(name)
        self._ready.postgres(self._postgres.url("postgres") if self._postgres else environment["DATABASE_URL"])
        if self._postgres:
            self._postgres.create_database()
        self._ready.redis(environment["REDIS_URL"])

    def _manage(self, environment: dict[str, str], *command: str) -> str:
        """Run one of our commands to its end; what it printed. Its last line of complaint is the failure's reason."""
        log = self.places.logs / f"{command[0]}.log"
        line: Sequence[str] = [sys.executable, str(PROJECT / "manage.py"), *command]
        with open(log, "w+", encoding="utf-8") as complaints:
            done = subprocess.run(
                line,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                start_new_session=True,
            )
            complaints.seek(0)
            if done.returncode:
                raise TrialFailure(f"{command[0]} failed: {complaint(complaints.read())} (its log is {log})")
        return done.stdout

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        self._say(f"{name} …")
        yield
        self._say(f"  done in {time.monotonic() - began:.1f} s")
