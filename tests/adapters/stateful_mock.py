"""A `stripe-stateful-mock` of one's own (npm, MIT): a Stripe-like server by others that knows idempotency keys.

It is installed from the lockfile beside this file into a folder of the virtual environment, once. Where that cannot be
done, the reason is given in words.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from runtime_app.adapters.payments.stripe import StripePayments
from runtime_app.adapters.payments.types import ProviderAccount
from tests.sandbox_process import wait_until

KEY = "sk_test_stateful"
_SPEC = Path(__file__).parent / "npm"
_FOLDER = Path(sys.prefix) / "npm-test-servers"
INSTALL_SECONDS = 120


class CannotInstall(Exception):
    """Why this machine has no such server."""


class AtStatefulMock:
    """It knows charges and no payment intents, so that payments here are named ch_…"""

    destination: str | None = None

    def __init__(self, url: str) -> None:
        self.account = ProviderAccount("acct_s", "stripe", KEY, url)
        self.payments = StripePayments(connect_timeout=5, read_timeout=20)

    def post(self, path: str, data: dict[str, str]) -> Any:
        answer = requests.post(f"{self.account.base_url}{path}", data=data, auth=(KEY, ""), timeout=20)
        answer.raise_for_status()
        return answer.json()

    def open_payment(self, captured: int = 10000, currency: str = "USD", source: str = "tok_visa") -> str:
        charge = self.post("/v1/charges", {"amount": str(captured), "currency": currency.lower(), "source": source})
        return str(charge["id"])


def install() -> Path:
    """The server's program, installed if it is not there yet; CannotInstall with a reason."""
    if shutil.which("node") is None or (npm := shutil.which("npm")) is None:
        raise CannotInstall("node and npm are not on the PATH")
    program = _FOLDER / "node_modules/stripe-stateful-mock/dist/cli.js"
    wanted, stamp = hashlib.sha256((_SPEC / "package-lock.json").read_bytes()).hexdigest(), _FOLDER / "installed"
    _FOLDER.mkdir(exist_ok=True)
    with open(_FOLDER / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            _run_npm(npm)
            stamp.write_text(wanted)
    if not program.exists():
        raise CannotInstall(f"npm said it was done, and {program.name} is not there")
    return program


def _run_npm(npm: str) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_SPEC / name, _FOLDER / name)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1"]
    try:
        done = subprocess.run(command, cwd=_FOLDER, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstall(f"npm ci did not finish: {type(error).__name__}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or "it said nothing").splitlines()[0]
        raise CannotInstall(f"npm ci failed: {said[:200]}")


@contextmanager
def running_stateful_mock(folder: Path) -> Iterator[AtStatefulMock]:
    """The server on a free port, with an empty store; ended afterwards. CannotInstall when it cannot be had."""
    program = install()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        ["node", str(program)], cwd=folder, env=os.environ | {"PORT": str(port), "LOG_LEVEL": "silent"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        def answers() -> bool:
            assert process.poll() is None, "the server ended by itself"
            try:
                return requests.get(f"http://127.0.0.1:{port}/", auth=(KEY, ""), timeout=5).ok
            except requests.ConnectionError:
                return False

        wait_until(answers, 60)
        yield AtStatefulMock(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(10)
