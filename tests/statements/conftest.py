"""A sandbox for one test alone: a statement shows all that an account has ever booked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from runtime_app import jobs
from runtime_app.statements import reach
from tests.sandbox_process import SandboxProcess, running_sandbox
from tests.statements.books import Books
from tests.world import World, use_sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    before = (os.environ.get("SANDBOX_URL"), settings.SANDBOX_URL, settings.ORDERS["base_url"])
    with running_sandbox(tmp_path) as started:
        use_sandbox(started)
        yield started
    if before[0] is None:
        os.environ.pop("SANDBOX_URL", None)
    else:
        os.environ["SANDBOX_URL"] = before[0]
    settings.SANDBOX_URL, settings.ORDERS["base_url"] = before[1:]
    jobs.ports.cache_clear()


@pytest.fixture
def books(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Books]:
    """Amber's account at the sandbox, whose statement days pass quickly."""
    world.retime(statement_retry=0.01, statement_every=0.02)
    monkeypatch.setattr(settings, "TIMING", world.timing)
    reach.provider.cache_clear()
    yield Books(world)
    reach.provider.cache_clear()
