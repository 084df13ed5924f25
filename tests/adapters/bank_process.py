"""A mock-bank of one's own for a test: `with running_bank(tmp_path) as bank: …`. Its clock stands in a far year."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from tests.sandbox_process import wait_until

IBAN = "NL41MOCK0000000001"  # ACME, which pays
POOR = "NL14MOCK0000000002"  # GLOBEX: has 12.50 and is held to it
CLOSED = "NL84MOCK0000000003"  # INITECH: a payment to it is rejected, AC04
NO_BANK = "NL57MOCK0000000004"  # EURODIS: a payment to it is rejected, RC01
ELSEWHERE = "NL30MOCK0000000005"  # at another bank: a payment to it settles
TODAY = "2099-01-06"  # a Tuesday, later than any day that a file of a test asks for


class BankProcess:
    """One bank and its control plane. With `early` it books on the day of the file, else on the next."""

    def __init__(self, folder: Path, *, early: bool, auth: str, more: tuple[str, ...]) -> None:
        self._log = folder / "bank.log"
        self._command = [sys.executable, "-m", "mockbank", "--port", "0", "--clock", f"{TODAY}T09:00",
                         "--cutoff", "23:59" if early else "00:00", *more,
                         *(["--auth", auth] if auth else [])]
        self._http = requests.Session()
        self._http.trust_env = False
        self._http.auth = tuple(auth.split(":")) if auth else None  # type: ignore[assignment]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

        def told() -> str | None:
            found = re.search(r"listening on (http://[0-9.:]+)/", self._log.read_text())
            assert self._process is not None and self._process.poll() is None, self._log.read_text()
            return found.group(1) if found else None

        self.url = wait_until(told, 30)

    def stop(self) -> None:
        """End the process and wait until it is gone."""
        self._http.close()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)

    def told(self, method: str, path: str, body: Any = None) -> Any:
        """One request; its JSON, whatever the status."""
        return self._http.request(method, self.url + path, json=body, timeout=30).json()

    def behave(self, behaviour: str, account: str = "ACME", *, balance: int | None = None, **parameters: Any) -> None:
        changes: dict[str, Any] = {"behaviour": behaviour, "parameters": parameters}
        changes |= {} if balance is None else {"balance": balance}
        told = self.told("PATCH", f"/_mock/accounts/{account}", changes)
        assert told.get("behaviour") == behaviour, told

    def advance(self, days: int) -> None:
        assert "to" in self.told("POST", f"/_mock/advance?days={days}")

    def payments(self, end_to_end_id: str | None = None) -> list[dict[str, Any]]:
        """What the bank decided on, oldest first."""
        told = self.told("GET", "/_mock/payments")
        return [p for p in reversed(told) if end_to_end_id in (None, p["end_to_end_id"])]

    def hand_in(self, file: bytes) -> dict[str, Any]:
        """Somebody's payment file, past the adapter."""
        answer: dict[str, Any] = self._http.post(self.url + "/payments", data=file, timeout=30).json()
        return answer

    def statements(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.told("GET", "/_mock/accounts/ACME/statements")
        return listed

    def statement_file(self, place: int = -1) -> bytes:
        """The camt.053 of one of the statements, the last if nothing else is said."""
        number = self.statements()[place]["message_id"]
        return self._http.get(f"{self.url}/_mock/mailbox/{number}", timeout=30).content

    def reset(self) -> None:
        assert self.told("POST", "/_mock/reset")["reset"] is True


@contextlib.contextmanager
def running_bank(
    folder: Path, *, early: bool = True, auth: str = "", more: tuple[str, ...] = ()
) -> Iterator[BankProcess]:
    """`more` are further options of mock-bank."""
    bank = BankProcess(folder, early=early, auth=auth, more=more)
    try:
        bank.start()
        yield bank
    finally:
        bank.stop()
