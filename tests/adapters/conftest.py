"""A sandbox for each test file, and the providers that the conformance tests are run against."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.providers import InMemory, Provider, StripeAtSandbox
from tests.sandbox_process import SandboxProcess, running_sandbox


@pytest.fixture(scope="module")
def sandbox_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as running:
        yield running


@pytest.fixture
def sandbox(sandbox_of_file: SandboxProcess) -> Iterator[SandboxProcess]:
    """The file's sandbox, with no fault armed before and after."""
    sandbox_of_file.clear_faults()
    yield sandbox_of_file
    sandbox_of_file.clear_faults()


@pytest.fixture(params=["stripe at the sandbox", "memory"])
def provider(request: pytest.FixtureRequest) -> Provider:
    if request.param == "memory":
        return InMemory()
    return StripeAtSandbox(request.getfixturevalue("sandbox"))


@pytest.fixture
def stripe(sandbox: SandboxProcess) -> StripeAtSandbox:
    return StripeAtSandbox(sandbox)
