"""`manage.py ingest_statement`: take a statement, from a file or from the provider, and say what it shows."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runtime_app import accounts
from runtime_app.adapters.payments.types import BadStatement, Deadline, Inconclusive, Statement
from runtime_app.errors import NotFound
from runtime_app.models import Account
from runtime_app.statements import ingest, reach

_ACTOR = "command:ingest_statement"


class Command(BaseCommand):
    help = (
        "Take the statement of one day of an account: a file that the bank sent, or read from the provider. The same"
        " one again adds nothing. Exit code 0: taken; 2: refused, with one sentence that says why."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--account", required=True, metavar="REF", help="the tenant's account, by its reference")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--file", metavar="PATH", help="a statement file, for example camt.053")
        source.add_argument("--day", metavar="YYYY-MM-DD", help="read this day from the provider")

    def handle(self, *args: Any, tenant: str, account: str, file: str | None, day: str | None, **options: Any) -> None:
        found = _account(tenant, account)
        wanted = _day(day) if day is not None else None
        told = _bytes(file) if file is not None else _read(found, wanted)
        taken = ingest.take(found, told, actor=_ACTOR, day=wanted)
        if taken.refused:
            _cannot(taken.refused)
        assert taken.day is not None  # what was not refused is of a day
        self.stdout.write(
            f"{taken.day.day} of {account}: {taken.lines_told} lines, {taken.lines_new} of them new"
            f"{'' if taken.fresh else ' (this statement was taken before)'}."
        )
        if taken.trouble:
            self.stdout.write(self.style.WARNING(f"STATEMENT_INCOMPLETE: {taken.trouble}"))
        for name, count in sorted(taken.classes.items()):
            self.stdout.write(f"{count:>8}  {name}")


def _account(tenant: str, ref: str) -> Account:
    try:
        return ingest.account_of(tenant, ref)
    except NotFound as error:
        _cannot(error.message)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        _cannot(f"--day takes a date like 2026-11-29, not {text!r}.")


def _bytes(file: str) -> bytes:
    """One byte more than is taken, so that a file that is too large is refused as such and not read whole."""
    try:
        with Path(file).open("rb") as opened:
            return opened.read(ingest.SIZE_MOST + 1)
    except OSError as error:
        _cannot(f"The file {file} cannot be read: {error.strerror}.")


def _read(account: Account, day: date | None) -> Statement | BadStatement:
    if day is None or reach.form_of(account.provider) == "none":
        _cannot("The provider of this account has no statements that can be read.")
    timing = settings.TIMING
    told = reach.provider(account.provider).read_statement(
        accounts.opened(account), day=day, deadline=Deadline.after(4 * timing.read_timeout)
    )
    if isinstance(told, Inconclusive):
        _cannot(f"The provider does not tell the statement of {day}: {told.cause}.")
    return told


def _cannot(why: str) -> NoReturn:
    raise CommandError(why, returncode=2)
