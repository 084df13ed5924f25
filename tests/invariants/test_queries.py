"""Each invariant is broken on purpose and must be named; an intact story must name none."""

from __future__ import annotations

import pytest

from runtime_app import invariants
from runtime_app.invariants import NAMES, Violation
from runtime_app.invariants.provider import AT_PROVIDER, SETTLED
from runtime_app.models import Task
from tests.invariants.breaks import BREAKS, CHILDREN
from tests.invariants.conftest import Story, check


def test_a_story_of_every_outcome_breaks_nothing(story: Story) -> None:
    """I1 to I14, held against the provider's own ledger too."""
    assert {task.status for task in _read(story)} == {
        "completed", "waiting_approval", "cancelled", "failed", "reconciling", "ready"}
    sent = story.world.sandbox.requests()
    assert invariants.check(story.ledger(), requests=sent, stuck_after=600, settled=True) == []


@pytest.mark.parametrize("name", BREAKS)
def test_it_names_the_invariant_that_is_broken(story: Story, name: str) -> None:
    with story.broken(*BREAKS[name]):
        assert name in check(stuck_after=600)
    assert check(stuck_after=600) == set()


@pytest.mark.parametrize("table, which", CHILDREN)
def test_it_names_a_row_that_went_over_to_another_tenant(story: Story, table: str, which: str) -> None:
    """M12: every part of a task belongs to its tenant."""
    with story.broken(f"UPDATE {table} SET tenant_id = %(birch)s WHERE {which}"):
        assert "tenants_are_apart" in check()


def test_every_invariant_is_broken_by_some_test() -> None:
    assert set(BREAKS) | set(AT_PROVIDER) | set(SETTLED) == set(NAMES)


@pytest.mark.parametrize(("name", "statement"), [
    ("events_without_gaps", "DELETE FROM runtime_app_event WHERE task_id = %(done)s AND seq = (SELECT event_seq"
     " FROM runtime_app_task WHERE id = %(done)s)"),
    ("events_without_gaps", "DELETE FROM runtime_app_event WHERE task_id = %(done)s"),
    ("one_end_event", "UPDATE runtime_app_event SET type = 'order.read' WHERE type = 'task.cancelled'"),
    ("chain_verifies", "UPDATE runtime_app_eventpayload SET data = '{\"amount_minor\": 1}' WHERE task_id = %(done)s"),
    ("hold_as_promised", "UPDATE runtime_app_hold SET state = 'held' WHERE task_id = %(declined)s"),
    ("hold_as_promised", "UPDATE runtime_app_hold SET state = 'released' WHERE task_id = %(done)s"),
    ("resend_is_allowed", "UPDATE runtime_app_operation SET resends = 0 WHERE id = %(op_resent)s"),
    ("approval_used_is_valid", "UPDATE runtime_app_operation SET authority = authority - 'approval'"
     " WHERE id = %(op_approved)s"),
    ("approval_used_is_valid", "DELETE FROM approvals_decision"),
    ("end_has_evidence", "DELETE FROM runtime_app_evidence WHERE operation_id = %(op_done)s"),
    ("call_precedes_send", "UPDATE runtime_app_evidence SET observed_at = observed_at - interval '1 hour'"),
    ("completed_means_done", "UPDATE runtime_app_task SET status = 'completed' WHERE id = %(cancelled)s"),
])
def test_it_sees_other_ways_of_breaking_it(story: Story, name: str, statement: str) -> None:
    """S9: also a chain that lost its tail, or all of it."""
    with story.broken(statement):
        assert name in check()


def test_money_that_people_know_of_is_no_violation(story: Story) -> None:
    """I1 to I14 each read "or a recorded case": a late execution follows the money and keeps the task's end."""
    late = ("UPDATE runtime_app_operation SET state = 'succeeded', provider_ref = 're_late' {}"
            " WHERE id = %(op_cancelled)s")
    watched = {"other_ends_moved_nothing", "completed_means_done"}
    with story.broken(late.format("")):
        assert watched <= check()
    with story.broken(late.format(", case_class = 'LATE_EXECUTION'"),
                      "UPDATE runtime_app_task SET attention = 'LATE_EXECUTION' WHERE id = %(cancelled)s"):
        assert not watched & check()


def test_a_violation_names_the_row_and_what_is_wrong_with_it(story: Story) -> None:
    with story.broken(*BREAKS["doubt_is_looked_at"]):
        assert invariants.check() == [
            Violation(
                "doubt_is_looked_at", str(story.ids()["op_unknown"]), "unknown with no next look and no open case"
            )]


def _read(story: Story) -> list[Task]:
    for task in story.tasks.values():
        task.refresh_from_db()
    return list(story.tasks.values())
