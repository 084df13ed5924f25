"""A sandbox for each test file, and the providers that the conformance tests are run against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

import pytest

from runtime_app.adapters.payments.bank import BankPayments
from runtime_app.adapters.payments.memory import MemoryPayments
from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import PaymentProvider, ProviderAccount
from tests.adapters.bank import BankAtMockBank, bank_at_mock_bank
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


@pytest.fixture(scope="module")
def bank_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BankAtMockBank]:
    with bank_at_mock_bank(tmp_path_factory.mktemp("bank")) as bank:
        yield bank


@pytest.fixture
def bank(bank_of_file: BankAtMockBank) -> BankAtMockBank:
    """The file's bank, as it was when it opened."""
    bank_of_file.bank.reset()
    bank_of_file.relay.faults.clear()
    return replace(bank_of_file)


PROVIDERS: dict[str, tuple[PaymentProvider, Callable[[pytest.FixtureRequest], Provider]]] = {
    "memory": (MemoryPayments(), lambda request: InMemory()),
    "stripe at the sandbox": (StripePayments(connect_timeout=1, read_timeout=1),
                              lambda request: StripeAtSandbox(request.getfixturevalue("sandbox"))),
    "bank at mock-bank": (BankPayments(connect_timeout=1, read_timeout=1),
                          lambda request: cast(Provider, request.getfixturevalue("bank"))),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test runs against every provider whose capability record fits what the test needs, whatever its name."""
    if "provider" in metafunc.fixturenames:
        able = getattr(metafunc.function, "needs", lambda can: True)
        nobody = ProviderAccount("nobody", "none", "")
        names = [name for name, (payments, _) in PROVIDERS.items() if able(payments.capabilities(nobody))]
        metafunc.parametrize("provider", names, indirect=True)


@pytest.fixture
def provider(request: pytest.FixtureRequest) -> Provider:
    return PROVIDERS[request.param][1](request)


@pytest.fixture
def stripe(sandbox: SandboxProcess) -> StripeAtSandbox:
    return StripeAtSandbox(sandbox)
