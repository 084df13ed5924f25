"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_client
from django.conf import settings
from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from runtime_app import invariants
from runtime_app.trial.cluster import Cluster, running_cluster
from tests.sandbox_process import SandboxProcess, running_sandbox
from tests.stack_plugin import Stack, stack_key
from tests.world import World, empty_tables, use_sandbox


@pytest.fixture(scope="session")
def stack(pytestconfig: pytest.Config) -> Stack:
    """The addresses of the run's PostgreSQL and Redis."""
    return pytestconfig.stash[stack_key]


@pytest.fixture
def redis(stack: Stack) -> Iterator[redis_client.Redis]:
    """A client of the run's Redis, emptied before the test."""
    with redis_client.Redis.from_url(stack.redis_url) as client:
        client.flushall()
        yield client


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A PostgreSQL and a Redis for one test alone, to be restarted, killed and emptied as it likes."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: Any) -> Iterator[None]:
    """The test database, made also when only stories on really committed rows run (pytest-django's own would not)."""
    settings.PASSWORD_HASHERS = ["tests.quick_hasher.QuickPBKDF2"]
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False)
        yield
        teardown_databases(made, verbosity=0)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    """The run's sandbox process: a provider and an order system with a ledger of their own."""
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as started:
        use_sandbox(started)
        yield started


@pytest.fixture
def world(sandbox: SandboxProcess, django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """The people and the engine, on really committed rows; invariants are checked at the end of every story."""
    with django_db_blocker.unblock():
        empty_tables()
        sandbox.clear_faults()
        made = World(sandbox)
        try:
            yield made
            broken = invariants.check()
            assert not broken, broken
        finally:
            made.close()
            empty_tables()
            connection.close()
