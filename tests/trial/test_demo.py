from __future__ import annotations

import glob
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from runtime_app.trial.demo import judge
from runtime_app.trial.failure import TrialFailure
from runtime_app.trial.places import PROJECT
from tests.trial.running import clean_environment

ONE = [{"amount_minor": 9821}]
LOST = [{"type": "operation.submitted"}, {"type": "operation.unknown"}]


@pytest.mark.processes
def test_the_demonstration_ends_well_with_one_refund_and_leaves_nothing() -> None:
    before = set(glob.glob(f"{tempfile.gettempdir()}/countersign-demo-*"))
    done = subprocess.run(
        [sys.executable, str(PROJECT / "manage.py"), "demo"],
        env=clean_environment(), capture_output=True, text=True, timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert "It is not known whether the provider did it." in done.stdout
    assert done.stdout.count("  re_") == 1, "the ledger has one refund"
    assert set(glob.glob(f"{tempfile.gettempdir()}/countersign-demo-*")) <= before


@pytest.mark.parametrize(
    ("task", "events", "refunds", "reason"),
    [
        ("failed", LOST, ONE, "ended as failed"),
        ("completed", LOST, ONE * 2, "has 2 refunds"),
        ("completed", LOST, [], "has 0 refunds"),
        ("completed", LOST, [{"amount_minor": 1}], "not one of 9821"),
        ("completed", LOST[:1], ONE, "was not lost"),
    ],
)
def test_any_other_end_is_a_failure(
    task: str, events: list[dict[str, Any]], refunds: list[dict[str, Any]], reason: str
) -> None:
    judge({"status": "completed"}, 9821, LOST, ONE)
    with pytest.raises(TrialFailure, match=reason):
        judge({"status": task}, 9821, events, refunds)
