"""A sandbox for one test alone: a statement shows all that an account has ever booked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from runtime_app.statements import reach
from tests.own_sandbox import sandbox_of_its_own
from tests.sandbox_process import SandboxProcess
from tests.statements.books import Books
from tests.world import World


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    with sandbox_of_its_own(tmp_path) as started:
        yield started


@pytest.fixture
def books(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Books]:
    """Amber's account at the sandbox, whose statement days pass quickly."""
    world.retime(statement_retry=0.01, statement_every=0.02)
    monkeypatch.setattr(settings, "TIMING", world.timing)
    reach.provider.cache_clear()
    yield Books(world)
    reach.provider.cache_clear()
