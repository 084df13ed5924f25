"""`manage.py check_invariants`: does everything that must hold, hold?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

import requests
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from runtime_app import invariants
from runtime_app.invariants import NAMES, Violation
from runtime_app.invariants.provider import AT_PROVIDER, SETTLED

_REFUND = {"id", "payment_ref", "amount_minor", "currency", "status", "operation_id", "idempotency_key"}
_LEDGER = AT_PROVIDER.keys() | SETTLED.keys()
_REQUEST = {"id", "method", "path", "operation_id", "idempotency_key", "body_sha256"}
Told = list[Mapping[str, Any]]


class Command(BaseCommand):
    help = (
        "Check every invariant, also against a sandbox's ledger when its address is given. Exit code 0: all hold;"
        " 1: at least one is broken, and each row that breaks it is listed; 2: this could not be found out."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--sandbox", metavar="URL", help="compare with the ledger of this sandbox, http://host:port")
        parser.add_argument(
            "--stuck-after", metavar="SECONDS", type=float, help="a task overdue by so much counts as stuck"
        )
        parser.add_argument(
            "--settled", action="store_true",
            help="nothing is moving: also compare each payment's total with the ledger of --sandbox",
        )

    def handle(
        self, *args: Any, sandbox: str | None, stuck_after: float | None, settled: bool = False, **options: Any
    ) -> None:
        if stuck_after is not None and not 0 <= stuck_after <= 10**9:
            _cannot("--stuck-after takes a number of seconds from 0.")
        found = self._found(sandbox, stuck_after, settled)
        if sandbox is not None and any(v.invariant in _LEDGER for v in found):
            # Ledger and database are read one after the other: what was moving in between is right when read again.
            again = set(self._found(sandbox, stuck_after, settled))
            found = [v for v in found if v in again]
        counts = Counter(v.invariant for v in found)
        unasked = (_LEDGER if sandbox is None else set() if settled else SETTLED.keys()) | (
            {"nothing_is_stuck"} if stuck_after is None else set())
        for name, says in NAMES.items():
            if name in unasked:
                continue
            mark = self.style.ERROR("BROKEN") if counts[name] else self.style.SUCCESS("holds ")
            self.stdout.write(f"{mark} {counts[name]:>6}  {name}: {says}")
        if found:
            raise CommandError("\n".join(["Broken:", *(f"  {v}" for v in found)]), returncode=1)

    def _found(self, sandbox: str | None, stuck_after: float | None, settled: bool) -> list[Violation]:
        ledger, sent = (None, []) if sandbox is None else (
            _read(sandbox, "refunds", _REFUND), _read(sandbox, "requests", _REQUEST))
        try:
            return invariants.check(ledger, requests=sent, stuck_after=stuck_after, settled=settled)
        except DatabaseError as error:
            _cannot(f"The database does not answer as it should: {str(error).strip().splitlines()[0]}")


def _read(sandbox: str, what: str, names: set[str]) -> Told:
    """What the sandbox's control plane tells, checked: it is somebody else's answer."""
    try:
        parts = urlsplit(sandbox)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        _cannot(f"--sandbox takes an address like http://127.0.0.1:8001, not {sandbox!r}.")
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(f"{sandbox.rstrip('/')}/_sandbox/{what}", timeout=30)
            told = answer.json() if answer.status_code == 200 else None
    except (requests.RequestException, ValueError) as error:
        _cannot(f"The sandbox at {sandbox} does not answer: {type(error).__name__}.")
    listed = told.get(what) if isinstance(told, dict) else None
    if not isinstance(listed, list) or not all(isinstance(row, dict) and names <= row.keys() for row in listed):
        _cannot(f"What answers at {sandbox} is not the sandbox's control plane (status {answer.status_code}).")
    return listed


def _cannot(why: str) -> NoReturn:
    raise CommandError(why, returncode=2)
