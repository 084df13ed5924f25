"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis as redis_client

from runtime_app.trial.cluster import Cluster, running_cluster
from tests.stack_plugin import Stack, stack_key


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
