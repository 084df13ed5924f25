"""A sandbox for one test alone: a sweep reads whatever an account has ever refunded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own_sandbox import sandbox_of_its_own
from tests.sandbox_process import SandboxProcess


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    with sandbox_of_its_own(tmp_path) as started:
        yield started
