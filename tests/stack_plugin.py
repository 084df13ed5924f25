"""Gives the test run a PostgreSQL and a Redis before Django's settings are read, unless the environment names them.

It is an early plugin (`-p` in pyproject.toml) because pytest-django reads the settings before any conftest is loaded.
Where the run is shared by several processes, each has servers of its own, so that none empties another's.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from runtime_app.trial.cluster import Cluster, running_cluster
from runtime_app.trial.failure import TrialFailure


@dataclass(frozen=True, slots=True)
class Stack:
    """Where the run's servers are; `cluster` is None when the environment named real ones."""

    database_url: str  # of the database beside which Django makes its test database
    redis_url: str
    cluster: Cluster | None


_OWN = "COUNTERSIGN_TEST_RUN_HAS_OWN_SERVERS"  # told to the processes that a run is shared by
stack_key = pytest.StashKey[Stack]()
_open = contextlib.ExitStack()


def _start() -> Stack:
    os.environ.setdefault("COUNTERSIGN_ENVIRONMENT", "test")
    cluster, named = None, "DATABASE_URL" in os.environ and "REDIS_URL" in os.environ
    shares = "PYTEST_XDIST_WORKER" in os.environ
    if named and shares and _OWN not in os.environ:
        raise pytest.UsageError("Processes cannot share named servers: leave out -n, or DATABASE_URL and REDIS_URL.")
    if not named or shares:
        cluster = _open.enter_context(running_cluster())
        for name, value in cluster.environment().items():
            if shares or name not in os.environ:
                os.environ[name] = value
        os.environ[_OWN] = "1"
    return Stack(os.environ["DATABASE_URL"], os.environ["REDIS_URL"], cluster)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    try:
        early_config.stash[stack_key] = _start()
        early_config.add_cleanup(_open.close)
    except TrialFailure as failure:
        raise pytest.UsageError(str(failure)) from failure
    return (yield)
