from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.callers import Caller
from tests.api.web_process import Web, running_web
from tests.world import World


@pytest.fixture
def shop(world: World) -> Caller:
    """Amber's application."""
    return Caller(world.key)


@pytest.fixture
def birch_shop(world: World) -> Caller:
    """Birch's application, which must learn nothing of Amber."""
    return Caller(world.birch_key)


@pytest.fixture(scope="package")
def web(django_db_setup: None) -> Iterator[Web]:
    """A real web process on the test database."""
    with running_web() as started:
        yield started
