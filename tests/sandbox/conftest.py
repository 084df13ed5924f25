"""A sandbox for each test file, and a bare way to speak to its provider's side."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.sandbox.inbox import Inbox, open_inbox
from tests.sandbox_process import SandboxProcess, running_sandbox

_numbers = itertools.count(1)


class Wire:
    """Requests as any HTTP client would send them, on one kept connection."""

    def __init__(self, sandbox: SandboxProcess) -> None:
        self.sandbox = sandbox
        self.http = requests.Session()
        self.http.trust_env = False
        self.key: str | None = "sk_test_wire"

    def send(
        self, method: str, path: str, *, key: str | None = None, data: Any = None, timeout: float = 20
    ) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        return self.http.request(method, self.sandbox.url + path, data=data, headers=headers, timeout=timeout)

    def refund(
        self, payment_ref: str, amount: int | str | None = 100, *, operation: str = "op-1", key: str | None = None,
        timeout: float = 20, **more: str,
    ) -> requests.Response:
        data = {"payment_intent": payment_ref, "metadata[operation_id]": operation, **more}
        if amount is not None:
            data["amount"] = str(amount)
        return self.send("POST", "/v1/refunds", key=key, data=data, timeout=timeout)

    def payment(self, captured: int = 1000, currency: str = "USD", tenant: str = "amber") -> str:
        """A new order with one payment; returns the payment's ref (the order is `ORD-` and the same number)."""
        number = next(_numbers)
        self.sandbox.order(f"ORD-{number}", tenant=tenant, currency=currency, payments={f"pi_{number}": captured})
        return f"pi_{number}"

    def listed(self, path: str, **query: str) -> list[dict[str, Any]]:
        """The data of one page of a list."""
        answer = self.http.get(self.sandbox.url + path, params=query, timeout=20,
                               headers={"Authorization": f"Bearer {self.key}"})
        assert answer.status_code == 200, answer.text
        data: list[dict[str, Any]] = answer.json()["data"]
        return data

    def moved(self, payment_ref: str) -> int:
        return sum(r["amount_minor"] for r in self.sandbox.refunds(payment_ref))


class Tenant:
    """One tenant with an account of its own, whose notices arrive at `inbox`."""

    def __init__(self, sandbox: SandboxProcess, inbox: Inbox) -> None:
        self.slug = f"tenant-{next(_numbers)}"
        self.secret = f"whsec_{self.slug}"
        self.inbox = inbox
        self.wire = Wire(sandbox)
        self.wire.key = f"sk_test_{self.slug}"
        sandbox.account(self.slug, self.wire.key, notice_url=inbox.url, notice_secret=self.secret)

    def payment(self, captured: int = 1000, currency: str = "USD") -> str:
        return self.wire.payment(captured, currency, self.slug)

    def close(self) -> None:
        self.wire.http.close()


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with open_inbox() as opened:
        yield opened


@pytest.fixture
def tenant(wire: Wire, inbox: Inbox) -> Iterator[Tenant]:
    told = Tenant(wire.sandbox, inbox)
    yield told
    told.close()


@pytest.fixture(scope="module")
def sandbox_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as running:
        yield running


@pytest.fixture
def wire(sandbox_of_file: SandboxProcess) -> Iterator[Wire]:
    sandbox_of_file.clear_faults()
    speaking = Wire(sandbox_of_file)
    yield speaking
    speaking.http.close()
    sandbox_of_file.clear_faults()
