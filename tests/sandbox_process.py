"""A sandbox of one's own for a test: `with running_sandbox(tmp_path) as sandbox: …`."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests

ROOT = Path(__file__).resolve().parents[1]


class SandboxProcess:
    """One sandbox process and its control plane. Ports stay the same over `kill` and `start`."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.db = folder / "sandbox.sqlite3"
        self._env = {**os.environ, "PYTHONPATH": str(ROOT), **env}
        self._process: subprocess.Popen[str] | None = None
        self._http = requests.Session()
        self._http.trust_env = False
        self.url = self.control_url = ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the process and return when it answers; the ports of an earlier start are taken again."""
        ports = [arg for name, url in (("--port", self.url), ("--control-port", self.control_url)) if url
                 for arg in (name, url.rpartition(":")[2])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "runtime_app.sandbox", "--db", str(self.db), *ports],
            stdout=subprocess.PIPE, text=True, env=self._env, cwd=ROOT,
        )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], 30)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.kill()
            raise RuntimeError("the sandbox did not start")
        told = json.loads(line)
        self.url, self.control_url = told["url"], told["control_url"]

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the process with this signal and wait until it is gone."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    def control(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None
    ) -> requests.Response:
        """One request to `/_sandbox` + path, on the control port; any status is returned."""
        return self._http.request(method, f"{self.control_url}/_sandbox{path}", json=body, params=query, timeout=30)

    def _told(self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None) -> Any:
        answer = self.control(method, path, body, query)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def fault(self, code: str, /, *, match: Mapping[str, str] | None = None, **parameters: Any) -> dict[str, Any]:
        """Arm a fault: `times`, `on` and the fault's own parameters as keywords."""
        told: dict[str, Any] = self._told("POST", "/faults", {"fault": code, "match": dict(match or {}), **parameters})
        return told

    def clear_faults(self) -> None:
        self._told("DELETE", "/faults")

    def order(self, order_ref: str = "ORD-1", *, tenant: str = "amber", currency: str = "USD",
              payments: Mapping[str, int] | None = None, destination: str | None = None) -> dict[str, Any]:
        """Make an order; `payments` maps payment_ref to what was captured, by default one of 10000."""
        listed = payments if payments is not None else {f"pi_{order_ref}": 10000}
        told: dict[str, Any] = self._told("POST", "/orders", {
            "tenant": tenant, "order_ref": order_ref, "currency": currency, "destination": destination,
            "payments": [{"payment_ref": r, "captured_minor": c} for r, c in listed.items()],
        })
        return told

    def patch_order(self, order_ref: str, **changes: Any) -> dict[str, Any]:
        told: dict[str, Any] = self._told("PATCH", f"/orders/{order_ref}", changes)
        return told

    def refunds(self, payment_ref: str | None = None, *, all: bool = False) -> list[dict[str, Any]]:
        """The refunds whose money really moved or is on its way; `all` adds failed and canceled ones."""
        query = ({"payment_ref": payment_ref} if payment_ref is not None else {}) | ({"all": "1"} if all else {})
        told: list[dict[str, Any]] = self._told("GET", "/refunds", None, query)["refunds"]
        return told

    def set_refund(self, refund_id: str, status: str) -> None:
        self._told("PATCH", f"/refunds/{refund_id}", {"status": status})

    def requests(self, **query: str) -> list[dict[str, Any]]:
        """Every request on the provider's and order system's side, oldest first, perhaps filtered."""
        told: list[dict[str, Any]] = self._told("GET", "/requests", None, query)["requests"]
        return told

    def account(self, tenant: str, api_key: str, *, notice_url: str | None = None,
                notice_secret: str | None = None) -> dict[str, Any]:
        """Register a tenant's account: its key then sees only its own things in lists, and its notices are sent."""
        told: dict[str, Any] = self._told("POST", "/accounts", {
            "tenant": tenant, "api_key": api_key, "notice_url": notice_url, "notice_secret": notice_secret})
        return told

    def notice(self, **about: Any) -> list[dict[str, Any]]:
        """Send a notice by hand; returned, as `notices` tells it, when each of `times` was tried once.

        `refund_id`, `payment_ref` or `operation_id` say what it is about; `type`, `created`, `id`, `times`, `status`,
        `amount`, `live`, `tenant`, `secret`, `how` and `age` what it is like.
        """
        told: list[dict[str, Any]] = self._told("POST", "/notices", about)["notices"]
        return told

    def notices(self, **query: str) -> list[dict[str, Any]]:
        """Every notice with its attempts, oldest first, perhaps filtered by refund_id, payment_ref, state, …"""
        told: list[dict[str, Any]] = self._told("GET", "/notices", None, query)["notices"]
        return told

    def clear_fault(self, number: int) -> None:
        self._told("DELETE", f"/faults/{number}")

    def advance(self, seconds: float) -> dict[str, Any]:
        """Move the sandbox's clock, and the product's when the process was told where that is."""
        told: dict[str, Any] = self._told("POST", "/clock", {"advance_s": seconds})
        return told

    def close(self) -> None:
        self._http.close()
        self.kill(signal.SIGTERM)


@contextlib.contextmanager
def running_sandbox(folder: Path, env: Mapping[str, str] | None = None) -> Iterator[SandboxProcess]:
    """A started sandbox with its ledger in `folder`; stopped at the end."""
    sandbox = SandboxProcess(folder, env or {})
    try:
        sandbox.start()
        yield sandbox
    finally:
        sandbox.close()


def wait_until(true: Any, seconds: float = 20.0) -> Any:
    """Call `true` until it returns something true, and return that; fail at the deadline."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.01)
    raise AssertionError("this did not become true in time")
