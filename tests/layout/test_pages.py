"""The pages that show the code's tables are written from them, and are not stale."""

from __future__ import annotations

import importlib
import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from runtime_app import states
from runtime_app.management.commands.draw_states import FINDINGS, PAGES, PARKED, VERDICTS, duration
from runtime_app.reconciliation.table import Finding, Verdict

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == PAGES[name](), "run `manage.py draw_states`"


def test_the_states_page_shows_every_move() -> None:
    page = PAGES["states.md"]()
    for move in states.MOVES:
        assert f"    {move.source} --> {move.target}\n" in page
        assert f"| {move.source} | {move.target} | {move.when} |\n" in page
    for source, target in states.OPERATION_LEGAL:
        assert f"    {source} --> {target}\n" in page
    assert "    [*] --> queued\n" in page and "    [*] --> submitting\n" in page
    assert all(f"    {status} --> [*]\n" in page for status in states.FINAL)


def test_the_database_allows_the_moves_of_the_tables_and_no_other() -> None:
    """The last migration that says it repeats the tables in SQL, since a migration cannot import them."""
    sql = importlib.import_module("runtime_app.migrations.0002_invariants")
    allowed = {name: set(re.findall(r"'([a-z_]+)>([a-z_]+)'", getattr(sql, name))) for name in ("TASKS", "OPERATIONS")}
    assert allowed["TASKS"] == {(a.value, b.value) for a, b in states.LEGAL if a != b}
    assert allowed["OPERATIONS"] == {(a.value, b.value) for a, b in states.OPERATION_LEGAL}


def test_everything_in_the_tables_has_words() -> None:
    assert (set(FINDINGS), set(VERDICTS), set(PARKED)) == (set(Finding), set(Verdict), set(states.Parked))


@pytest.mark.parametrize(("seconds", "words"), [
    (5, "5 s"), (0.5, "0.5 s"), (90, "90 s"), (120, "2 min"), (3600, "1 h"), (86400, "1 day"), (864000, "10 days")])
def test_durations_are_told_in_whole_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_stale_page_is_told_and_then_written(tmp_path: Path) -> None:
    out = StringIO()
    with pytest.raises(CommandError, match=r"Stale: states\.md"):
        call_command("draw_states", check=True, folder=tmp_path, stdout=out)
    call_command("draw_states", folder=tmp_path, stdout=out)
    call_command("draw_states", check=True, folder=tmp_path, stdout=out)
    assert "up to date" in out.getvalue()
    (tmp_path / "events.md").write_text("something else")
    with pytest.raises(CommandError, match=r"Stale: events\.md\."):
        call_command("draw_states", check=True, folder=tmp_path, stdout=out)


def test_a_folder_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written") as refused:
        call_command("draw_states", folder=tmp_path / "none", stdout=StringIO())
    assert refused.value.returncode == 2
