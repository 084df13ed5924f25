"""`manage.py ingest_statement`: what was taken and the classes, or exit 2 and one sentence."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from runtime_app import accounts
from runtime_app.models import Statement
from tests.adapters.bank import SETTINGS
from tests.adapters.bank_camt_file import balance, camt053, entry, statement
from tests.statements.books import Books


def run(*options: str) -> str:
    out = StringIO()
    call_command("ingest_statement", *options, stdout=out, no_color=True)
    return out.getvalue()


def amber(*options: str, account: str = "stripe") -> str:
    return run("--tenant", "amber", "--account", account, *options)


def test_it_reads_a_day_and_prints_the_classes_and_twice_is_once(books: Books) -> None:
    books.refund()
    order = books.world.order()
    books.world.sandbox.patch_order(order, outside_refund={"payment_ref": f"pi_{order}", "amount_minor": 777})
    books.next_day()
    first = amber("--day", str(books.day))
    assert first.splitlines() == [
        f"{books.day} of stripe: 2 lines, 2 of them new.", "       1  MATCHED", "       1  MISSING_HERE"]
    again = amber("--day", str(books.day)).splitlines()
    assert again[0] == f"{books.day} of stripe: 2 lines, 0 of them new (this statement was taken before)."
    assert again[1:] == first.splitlines()[1:] and Statement.objects.count() == 1


def test_it_takes_a_file_and_says_by_how_much_it_does_not_add_up(books: Books, tmp_path: Path) -> None:
    accounts.keep(books.world.amber, "bank", provider="bank", base_url="http://127.0.0.1:1", settings=SETTINGS)
    day = str(books.day)
    file = tmp_path / "day.xml"
    file.write_bytes(camt053(statement(
        [entry("25.00")], period="", opening=balance("OPBD", "100.00", day=day),
        closing=balance("CLBD", "70.00", day=day))).replace(b"2099-01-06", day.encode()))
    told = amber("--file", str(file), account="bank").splitlines()
    assert told[0] == f"{day} of bank: 1 lines, 1 of them new."
    assert told[1].startswith("STATEMENT_INCOMPLETE: It does not add up:") and "-5.00 EUR" in told[1]
    assert told[2:] == ["       1  MISSING_HERE"]


@pytest.mark.parametrize(("options", "says"), [
    (["--tenant", "nobody", "--account", "stripe", "--day", "2026-11-29"], "no account 'stripe' of a tenant 'nobody'"),
    (["--tenant", "amber", "--account", "none", "--day", "2026-11-29"], "no account 'none'"),
    (["--tenant", "amber", "--account", "stripe", "--day", "29.11.2026"], "--day takes a date like"),
    (["--tenant", "amber", "--account", "stripe", "--day", "2199-01-01"], "is not over yet"),
    (["--tenant", "amber", "--account", "stripe", "--file", "/no/such/file"], "cannot be read"),
    (["--tenant", "amber", "--account", "stripe", "--file", "pyproject.toml"], "there is no file to bring"),
    (["--tenant", "amber", "--account", "bank", "--file", "pyproject.toml"], "not XML"),
])
def test_it_refuses_bad_input_with_one_sentence_and_exit_code_2(books: Books, options: list[str], says: str) -> None:
    accounts.keep(books.world.amber, "bank", provider="bank", base_url="http://127.0.0.1:1", settings=SETTINGS)
    with pytest.raises(CommandError) as refused:
        run(*options)
    assert refused.value.returncode == 2 and says in str(refused.value), refused.value
    assert len(str(refused.value).splitlines()) == 1 and Statement.objects.count() == 0


def test_a_provider_that_does_not_answer_is_said_in_one_sentence(books: Books) -> None:
    books.next_day()
    books.world.sandbox.fault("F47", how="unavailable", status=503)
    with pytest.raises(CommandError) as refused:
        amber("--day", str(books.day))
    assert refused.value.returncode == 2 and "does not tell the statement" in str(refused.value)
