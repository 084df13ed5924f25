"""For each invariant, statements that break it in the story of conftest.py."""

from __future__ import annotations

_NO_INDEX = "DROP INDEX {}"
_NO_CHECK = "ALTER TABLE {} DROP CONSTRAINT {}"
_COPIED = (
    "INSERT INTO {table} SELECT (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid(){also}))).*"
    " FROM {table} r WHERE {which}"
)


def _copy(table: str, which: str, **also: str) -> str:
    said = "".join(f", '{name}', {value}" for name, value in also.items())
    return _COPIED.format(table=table, which=which, also=said)


BREAKS: dict[str, tuple[str, ...]] = {
    "end_has_no_next_step": (
        _NO_CHECK.format("runtime_app_task", "task_end_has_no_next_step"),
        "UPDATE runtime_app_task SET lease_owner = 'w', due_at = runtime_now() WHERE id = %(done)s",
    ),
    "somebody_looks": ("UPDATE runtime_app_task SET due_at = NULL WHERE id = %(unknown)s",),
    "lease_ends": ("UPDATE runtime_app_task SET lease_owner = 'w', due_at = NULL WHERE id = %(unknown)s",),
    "completed_means_done": ("UPDATE runtime_app_operation SET state = 'failed' WHERE id = %(op_done)s",),
    "other_ends_moved_nothing": ("UPDATE runtime_app_operation SET state = 'succeeded' WHERE id = %(op_cancelled)s",),
    "end_leaves_nothing_open": ("UPDATE runtime_app_operation SET state = 'pending' WHERE id = %(op_declined)s",),
    "operation_fits_task": ("UPDATE runtime_app_task SET status = 'executing' WHERE id = %(unknown)s",),
    "one_open_question": ("UPDATE approvals_approval SET state = 'expired' WHERE task_id = %(waiting)s",),
    "decider_is_not_requester": ("UPDATE approvals_decision SET person_id = %(rita)s WHERE person_id = %(ada)s",),
    "decision_in_time": ("UPDATE approvals_decision SET decided_at = decided_at + interval '60 days'",),
    "decider_did_not_change_it": (
        "UPDATE runtime_app_task SET state = jsonb_set(state, '{shaped_by}', jsonb_build_array(%(ada)s::bigint))"
        " WHERE id = %(approved)s",
    ),
    "one_voice_each": ("UPDATE approvals_decision SET for_person_id = person_id",),
    "approved_by_every_review": ("UPDATE approvals_decision SET review = 'another'",),
    "end_is_somebodys_word": ("UPDATE approvals_approval SET state = 'rejected' WHERE task_id = %(approved)s",),
    "decision_saw_what_was_asked": ("UPDATE approvals_decision SET fingerprint = 'other'",),
    "approval_used_is_valid": ("UPDATE approvals_approval SET fingerprint = 'other' WHERE task_id = %(approved)s",),
    "payment_within_captured": (
        _NO_CHECK.format("runtime_app_balance", "balance_within_captured"),
        "UPDATE runtime_app_balance SET external_minor = captured_minor",
    ),
    "one_operation_per_refund": (
        _NO_INDEX.format("one_operation_per_provider_ref"),
        "UPDATE runtime_app_operation SET provider_ref = (SELECT provider_ref FROM runtime_app_operation"
        " WHERE id = %(op_done)s) WHERE id = %(op_approved)s",
    ),
    "request_stays_frozen": ("UPDATE runtime_app_operation SET request_body = 'amount=9' WHERE id = %(op_done)s",),
    "resend_is_allowed": (
        "DELETE FROM runtime_app_evidence WHERE operation_id = %(op_resent)s AND finding = 'absent'",),
    "call_precedes_send": ("DELETE FROM runtime_app_call WHERE operation_id = %(op_done)s",),
    "not_sent_is_proved": ("UPDATE runtime_app_operation SET state = 'prepared' WHERE id = %(op_unknown)s",),
    "hold_as_promised": ("UPDATE runtime_app_hold SET state = 'released' WHERE task_id = %(ready)s",),
    "hold_fits_task": ("UPDATE runtime_app_hold SET amount_minor = amount_minor + 1 WHERE task_id = %(ready)s",),
    "end_has_evidence": (
        "UPDATE runtime_app_operation SET resolved_by_id = (SELECT resolved_by_id FROM runtime_app_operation"
        " WHERE id = %(op_done)s) WHERE id = %(op_cancelled)s",
    ),
    "two_people_declare": (
        _copy("runtime_app_evidence", "r.operation_id = %(op_cancelled)s AND r.finding = 'absent'",
              kind="'human_attestation'"),),
    "balance_is_the_sum": ("UPDATE runtime_app_balance SET reserved_minor = reserved_minor + 1",),
    "refunded_is_what_succeeded": (
        "UPDATE runtime_app_operation SET amount_minor = amount_minor + 1 WHERE id = %(op_done)s",),
    "doubt_is_looked_at": ("UPDATE runtime_app_operation SET next_check_at = NULL WHERE id = %(op_unknown)s",),
    "one_currency": ("UPDATE runtime_app_operation SET currency = 'EUR' WHERE id = %(op_done)s",),
    "one_in_doubt_per_payment": (
        _NO_INDEX.format("one_unresolved_submission_per_payment"),
        _NO_CHECK.format("runtime_app_operation", "one_operation_per_key"),
        _NO_CHECK.format("runtime_app_operation", "one_operation_per_ordinal"),
        _copy("runtime_app_operation", "r.id = %(op_unknown)s"),
    ),
    "events_without_gaps": ("DELETE FROM runtime_app_event WHERE task_id = %(done)s AND seq = 2",),
    "head_is_the_last_event": ("UPDATE runtime_app_task SET event_head = 'x' WHERE id = %(done)s",),
    "first_event_opens": ("UPDATE runtime_app_event SET type = 'order.read' WHERE task_id = %(done)s AND seq = 1",),
    "one_end_event": ("UPDATE runtime_app_event SET type = 'task.failed' WHERE type = 'task.completed'",),
    "payload_has_its_event": (
        "UPDATE runtime_app_eventpayload SET seq = 99 WHERE task_id = %(done)s AND seq = 1",),
    "told_once": (
        "ALTER TABLE runtime_app_intent DROP CONSTRAINT runtime_app_intent_dedup_key_key",
        _copy("runtime_app_intent", "r.task_id = %(done)s"),
    ),
    "completed_is_told": ("DELETE FROM runtime_app_intent WHERE task_id = %(done)s",),
    "one_task_per_request": (
        _NO_CHECK.format("runtime_app_task", "one_task_per_request_key"),
        _copy("runtime_app_task", "r.id = %(waiting)s"),
    ),
    "tenants_are_apart": ("UPDATE runtime_app_hold SET tenant_id = %(birch)s WHERE task_id = %(done)s",),
    "chain_verifies": ("UPDATE runtime_app_event SET actor = 'person:1:eve' WHERE task_id = %(done)s AND seq = 2",),
    "operation_id_is_derived": ("UPDATE runtime_app_operation SET ordinal = 7 WHERE id = %(op_done)s",),
    "resend_in_key_window": (
        "UPDATE runtime_app_operation SET first_submit_at = first_submit_at - interval '2 days'",),
    "nothing_is_stuck": (
        "UPDATE runtime_app_task SET due_at = runtime_now() - interval '1 hour' WHERE id = %(unknown)s",),
}

# Every wall between tenants by itself: table, and what names the row.
CHILDREN: tuple[tuple[str, str], ...] = (
    ("runtime_app_operation", "id = %(op_done)s"), ("runtime_app_hold", "task_id = %(done)s"),
    ("runtime_app_balance", "true"), ("runtime_app_event", "task_id = %(done)s AND seq = 1"),
    ("runtime_app_eventpayload", "task_id = %(done)s AND seq = 1"), ("runtime_app_intent", "task_id = %(done)s"),
    ("runtime_app_call", "operation_id = %(op_done)s"), ("runtime_app_evidence", "operation_id = %(op_done)s"),
    ("runtime_app_attempt", "task_id = %(done)s"), ("runtime_app_step", "task_id = %(done)s"),
    ("approvals_approval", "task_id = %(waiting)s"), ("approvals_decision", "true"), ("approvals_note", "true"),
    ("approvals_delivery", "true"),
)
