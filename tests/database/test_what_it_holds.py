"""What the database refuses by itself, whoever asks (M10, M14, and the invariants beside them)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction

from runtime_app.models import Task
from runtime_app.states import LEGAL, OPERATION_LEGAL, Status
from tests.world import World


def refuses(sql: str, params: Sequence[Any] = (), *, match: str) -> None:
    with pytest.raises(DatabaseError, match=match), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)


def _moves_of(function: str) -> set[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = %s", [function])
        return {(a, b) for a, b in re.findall(r"'(\w+)>(\w+)'", cursor.fetchone()[0])}


def test_the_legal_moves_are_those_of_the_state_table(world: World) -> None:
    assert _moves_of("task_guard") == {(a.value, b.value) for a, b in LEGAL if a != b}
    assert _moves_of("operation_guard") == {(a.value, b.value) for a, b in OPERATION_LEGAL}


def test_every_illegal_move_of_a_task_is_refused(world: World) -> None:
    """A task is put into each state by force, then moved to each other one."""
    task = world.ask(world.order(), 6000)
    for source in Status:
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            cursor.execute("UPDATE runtime_app_task SET status = %s, due_at = NULL WHERE id = %s", [source, task.id])
            cursor.execute("SET session_replication_role = origin")
        for target in Status:
            if source != target and (source, target) not in LEGAL:
                refuses(
                    "UPDATE runtime_app_task SET status = %s, revision = revision + 1 WHERE id = %s", [target, task.id],
                    match="illegal move",
                )
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE runtime_app_task SET status = 'queued', due_at = runtime_now() WHERE id = %s", [task.id])
        cursor.execute("SET session_replication_role = origin")


def test_revisions_fences_and_births_are_held(world: World) -> None:
    task = world.ask(world.order(), 6000)
    one = "UPDATE runtime_app_task SET {} WHERE id = %s"
    refuses(one.format("status = 'ready'"), [task.id], match="one revision")
    refuses(one.format("revision = revision + 2"), [task.id], match="grows by one")
    refuses(one.format("revision = revision - 1"), [task.id], match="grows by one")
    refuses(one.format("fence = fence - 1"), [task.id], match="never go back")
    refuses(one.format(f"tenant_id = '{world.birch.id}'"), [task.id], match="keeps its tenant")
    refuses(one.format("amount_minor = 0"), [task.id], match="task_amount_positive")
    refuses(one.format("currency = ''"), [task.id], match="task_currency_code")
    refuses("DELETE FROM runtime_app_task WHERE id = %s", [task.id], match="append-only")
    refuses(
        "INSERT INTO runtime_app_task (id, tenant_id, workflow, workflow_version, schema_version, prompt_version, lane,"
        " request_key, request_sha256, status, revision, fence, starts, ordinal, last_error, order_ref, metadata,"
        " state, fingerprint, cancel_wished_by, cancel_reason, event_seq, event_head) SELECT %s, tenant_id, workflow,"
        " workflow_version, schema_version, prompt_version, lane, 'other', request_sha256, 'ready', 1, 0, 0, 1, '',"
        " order_ref, metadata, state, '', '', '', 0, '' FROM runtime_app_task WHERE id = %s",
        [uuid4(), task.id], match="starts queued",
    )


def test_events_and_evidence_are_append_only_and_gapless(world: World) -> None:
    task = world.ask(world.order(), 600)
    world.finish(task)
    for table in ("event", "evidence"):
        refuses(f"DELETE FROM runtime_app_{table}", match="append-only")
        refuses(f"TRUNCATE runtime_app_{table} CASCADE", match="append-only")
    refuses("UPDATE runtime_app_event SET type = 'task.opened'", match="append-only")
    refuses("UPDATE runtime_app_evidence SET finding = 'x'", match="append-only")
    refuses("UPDATE runtime_app_eventpayload SET data = '{}'", match="append-only")
    insert = (
        "INSERT INTO runtime_app_event (task_id, seq, tenant_id, type, actor, payload_sha256, chain)"
        " VALUES (%s, %s, %s, 'task.opened', 'nobody', '', '')"
    )
    count = Task.objects.get(id=task.id).event_seq
    refuses(insert, [task.id, count + 2, world.amber.id], match="gap in the events")
    refuses(insert, [task.id, count + 1, world.amber.id], match="gap in the events")  # the task does not count it
    refuses(insert, [task.id, count, world.amber.id], match="duplicate key")


def test_an_operation_keeps_its_request_and_a_payment_its_one_submission(world: World) -> None:
    order = world.order()
    task = world.ask(order, 600)
    world.finish(task)
    operation = world.operation(task)
    one = "UPDATE runtime_app_operation SET {} WHERE id = %s"
    for change in ("idempotency_key = 'other'", "request_body = 'x'", "amount_minor = 601", "currency = 'EUR'"):
        refuses(one.format(change), [operation.id], match="is frozen")
    refuses(one.format("state = 'submitting'"), [operation.id], match="illegal move")
    refuses(one.format("resolved_by_id = NULL"), [operation.id], match="operation_end_has_evidence")
    refuses("DELETE FROM runtime_app_operation WHERE id = %s", [operation.id], match="append-only")
    refuses("UPDATE runtime_app_hold SET amount_minor = 1", match="has ended")
    refuses("UPDATE runtime_app_balance SET reserved_minor = captured_minor + 1", match="balance_within_captured")
    copy = (
        "INSERT INTO runtime_app_operation (id, tenant_id, task_id, effect, ordinal, account, order_ref, payment_ref,"
        " amount_minor, currency, exponent, idempotency_key, request_body, request_sha256, api_version, authority,"
        " fingerprint, state, checks, absents, resends, resend_disabled, note) SELECT %s, tenant_id, task_id, effect,"
        " %s, account, order_ref, payment_ref, amount_minor, currency, exponent, %s, request_body,"
        " request_sha256, api_version, authority, fingerprint, 'submitting', 0, 0, 0, false, ''"
        " FROM runtime_app_operation WHERE id = %s"
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(copy, [uuid4(), 2, "k2", operation.id])
        with pytest.raises(DatabaseError, match="one_unresolved_submission"), transaction.atomic():
            cursor.execute(copy, [uuid4(), 3, "k3", operation.id])
        transaction.set_rollback(True)


def test_a_closed_approval_and_a_decision_never_change(world: World) -> None:
    task = world.ask(world.order(), 6000)
    asked = world.approval(task)
    world.decide(world.ada, asked, "reject", "no receipt")
    refuses("UPDATE approvals_approval SET state = 'approved'", match="is closed")
    refuses("UPDATE approvals_decision SET verdict = 'approve'", match="is closed")
    refuses("DELETE FROM approvals_decision", match="never deleted")


def test_a_request_key_is_taken_for_ever_within_its_tenant(world: World) -> None:
    task = world.ask(world.order(), 6000)
    refuses(
        "UPDATE runtime_app_task SET request_key = 'other' WHERE id = %s", [task.id],
        match="keeps its tenant, request key",
    )
