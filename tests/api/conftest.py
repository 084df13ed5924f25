from __future__ import annotations

import pytest

from tests.api.callers import Caller
from tests.world import World


@pytest.fixture
def shop(world: World) -> Caller:
    """Amber's application."""
    return Caller(world.key)


@pytest.fixture
def birch_shop(world: World) -> Caller:
    """Birch's application, which must learn nothing of Amber."""
    return Caller(world.birch_key)
