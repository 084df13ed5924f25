"""A sandbox for one test alone, where what an account has ever booked is read: the run's own shows every test's."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from runtime_app import jobs
from tests.sandbox_process import SandboxProcess, running_sandbox
from tests.world import use_sandbox


@contextlib.contextmanager
def sandbox_of_its_own(folder: Path) -> Iterator[SandboxProcess]:
    """This process and its children talk to a new sandbox until the end, and to the run's again afterwards."""
    before = (os.environ.get("SANDBOX_URL"), settings.SANDBOX_URL, settings.ORDERS["base_url"])
    with running_sandbox(folder) as started:
        use_sandbox(started)
        yield started
    if before[0] is None:
        os.environ.pop("SANDBOX_URL", None)
    else:
        os.environ["SANDBOX_URL"] = before[0]
    settings.SANDBOX_URL, settings.ORDERS["base_url"] = before[1:]
    jobs.ports.cache_clear()
