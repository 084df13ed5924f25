"""`manage.py check_invariants`: 0 when all hold, 1 with a list when not, 2 with a sentence when it cannot tell."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from runtime_app.invariants import NAMES
from runtime_app.invariants.provider import AT_PROVIDER, SETTLED
from tests.invariants.conftest import Story


def _run(**options: Any) -> tuple[int, str, str]:
    """Exit code, standard output, and what is told of the error."""
    out = StringIO()
    try:
        call_command("check_invariants", stdout=out, no_color=True, **options)
    except CommandError as error:
        return error.returncode, out.getvalue(), str(error)
    return 0, out.getvalue(), ""


def test_it_prints_every_invariant_with_its_count(story: Story) -> None:
    code, out, error = _run(sandbox=story.world.sandbox.control_url, stuck_after=600, settled=True)
    # The run's sandbox also holds refunds of other tests, whose rows are gone: only that may be broken here.
    assert {line.split()[2] for line in out.splitlines()} == {f"{name}:" for name in NAMES}
    gone = ("effects_are_ours", "payment_total_is_named")
    assert code in {0, 1} and all(line.split(":")[0].strip() in gone for line in error.splitlines()[1:])
    code, out, error = _run()
    assert (code, error) == (0, "") and len(out.splitlines()) == len(NAMES) - len(AT_PROVIDER | SETTLED) - 1


def test_it_ends_with_1_and_lists_what_is_broken(story: Story) -> None:
    with story.broken("UPDATE runtime_app_balance SET reserved_minor = reserved_minor + 1"):
        code, out, error = _run()
    assert code == 1 and "BROKEN" in out
    assert "balance_is_the_sum: pi_" in error


def test_a_ledger_that_disagrees_twice_is_told(story: Story) -> None:
    order = story.tasks["done"].order_ref
    refund = story.world.sandbox.refunds(f"pi_{order}")[0]
    story.world.sandbox.set_refund(refund["id"], "failed")
    try:
        code, _, error = _run(sandbox=story.world.sandbox.control_url)
    finally:
        story.world.sandbox.set_refund(refund["id"], "succeeded")
    assert code == 1 and "completed_is_at_the_provider" in error


@pytest.mark.parametrize("address", [
    "nonsense", "ftp://127.0.0.1:1", "http://", "http://127.0.0.1:99999", "http://[::1", "http://127.0.0.1:1", ""])
def test_an_address_that_is_none_is_told_in_a_sentence(story: Story, address: str) -> None:
    code, out, error = _run(sandbox=address)
    assert code == 2 and out == "" and error.endswith(".") and "Traceback" not in error


def test_an_address_of_something_else_is_told_in_a_sentence(story: Story) -> None:
    code, _, error = _run(sandbox=f"{story.world.sandbox.control_url}/_sandbox/orders")
    assert code == 2 and "not the sandbox's control plane" in error


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_number_of_seconds_that_is_none_is_told_in_a_sentence(story: Story, seconds: float) -> None:
    assert _run(stuck_after=seconds)[0] == 2
