"""When each part of the trial is ready, or why it will not be."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import redis
import requests
from rq import Worker

from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.places import Places
from runtime_app.trial.supervision import Supervisor
from runtime_app.trial.visitor import local_session
from runtime_app.trial.waiting import wait_for

READY_SECONDS = 90.0  # a loaded machine of two cores imports Django four times at once


class Readiness:
    """Each method returns when its part is ready, and raises TrialFailure with one sentence when it will not be."""

    def __init__(self, supervisor: Supervisor, places: Places) -> None:
        self._supervisor = supervisor
        self._places = places

    def postgres(self, url: str) -> None:
        def reason() -> str | None:
            try:
                psycopg.connect(url, connect_timeout=10).close()
            except psycopg.Error as error:
                return str(error).splitlines()[0]
            return None

        self._server("postgres", "PostgreSQL at DATABASE_URL", reason)

    def redis(self, url: str) -> None:
        def reason() -> str | None:
            try:
                with redis.Redis.from_url(url, socket_connect_timeout=10) as client:
                    client.ping()
            except (redis.RedisError, ValueError) as error:
                return str(error)
            return None

        self._server("redis", "Redis at REDIS_URL", reason)

    def http(self, name: str, url: str) -> None:
        def answers() -> bool:
            try:
                with local_session() as session:
                    return session.get(url, timeout=5).status_code == 200
            except requests.RequestException:
                return False

        self._wait(name, answers)

    def work(self, redis_url: str, *, workers: int) -> None:
        """All workers are registered with RQ, and the clock has not fallen over."""

        def registered() -> bool:
            with redis.Redis.from_url(redis_url) as client:
                return Worker.count(connection=client) >= workers

        self._wait("worker", registered)
        self._wait("clock", lambda: self._supervisor.up("clock"))

    def _server(self, name: str, given: str, reason: Callable[[], str | None]) -> None:
        """One of our own is waited for; one that the person named must answer now."""
        if self._supervisor.knows(name):
            self._wait(name, lambda: reason() is None)
        elif why := reason():
            raise TrialFailure(f"{given} cannot be used: {why}")

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        def ready_or_failed() -> bool:
            if ready():
                return True
            if not self._supervisor.alive:
                raise TrialFailure("The supervisor was killed while the trial started; make up starts it again.")
            if why := self._supervisor.failed(name):
                raise TrialFailure(f"{name} does not start: {why}")
            return False

        if not wait_for(ready_or_failed, seconds=READY_SECONDS, every=0.1):
            where = f"the logs are in {self._places.logs}"
            raise TrialFailure(f"{name} was not ready within {READY_SECONDS:.0f} s; {where}")
