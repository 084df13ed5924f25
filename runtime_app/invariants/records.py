"""Invariants of events, of what must leave the system, and of the walls between tenants."""

from __future__ import annotations

from runtime_app.invariants.types import Invariant, excused, listed
from runtime_app.states import FINAL

_FINAL = listed(FINAL)
_ENDS = listed(f"task.{status}" for status in FINAL)

# Every row that names a row of the same tenant: child, its column, parent.
_OWNED = (
    ("runtime_app_task", "session_id", "runtime_app_session"),
    ("runtime_app_task", "service_account_id", "runtime_app_serviceaccount"),
    ("runtime_app_message", "session_id", "runtime_app_session"),
    ("runtime_app_attempt", "task_id", "runtime_app_task"),
    ("runtime_app_step", "task_id", "runtime_app_task"),
    ("runtime_app_event", "task_id", "runtime_app_task"),
    ("runtime_app_eventpayload", "task_id", "runtime_app_task"),
    ("runtime_app_intent", "task_id", "runtime_app_task"),
    ("runtime_app_operation", "task_id", "runtime_app_task"),
    ("runtime_app_call", "operation_id", "runtime_app_operation"),
    ("runtime_app_evidence", "operation_id", "runtime_app_operation"),
    ("runtime_app_evidence", "call_id", "runtime_app_call"),
    ("runtime_app_hold", "task_id", "runtime_app_task"),
    ("runtime_app_hold", "balance_id", "runtime_app_balance"),
    ("approvals_approval", "task_id", "runtime_app_task"),
    ("approvals_decision", "approval_id", "approvals_approval"),
    ("approvals_note", "approval_id", "approvals_approval"),
    ("approvals_delivery", "approval_id", "approvals_approval"),
    ("runtime_app_case", "operation_id", "runtime_app_operation"),
    ("runtime_app_case", "task_id", "runtime_app_task"),
    ("runtime_app_case", "account_id", "runtime_app_account"),
    ("runtime_app_caseentry", "case_id", "runtime_app_case"),
    ("runtime_app_evidence", "case_id", "runtime_app_case"),
    ("runtime_app_notice", "account_id", "runtime_app_account"),
    ("runtime_app_paymentlook", "account_id", "runtime_app_account"),
    ("runtime_app_statementday", "account_id", "runtime_app_account"),
    ("runtime_app_statement", "day_id", "runtime_app_statementday"),
    ("runtime_app_statementline", "day_id", "runtime_app_statementday"),
    ("runtime_app_statementline", "operation_id", "runtime_app_operation"),
    ("runtime_app_statementline", "case_id", "runtime_app_case"),
)
_FOREIGN = " UNION ALL ".join(
    f"SELECT c.{column}, '{child} of another tenant than its {parent}' FROM {child} c"
    f" JOIN {parent} p ON p.id = c.{column} WHERE p.tenant_id <> c.tenant_id"
    for child, column, parent in _OWNED
)

RECORDS = (
    Invariant(
        "events_without_gaps",
        "A task's events are numbered from 1 without a gap, and the task knows how many there are.",
        "SELECT t.id, t.event_seq || ' events known, ' || count(e.seq) || ' there, the last is '"
        " || coalesce(max(e.seq), 0) FROM runtime_app_task t LEFT JOIN runtime_app_event e ON e.task_id = t.id"
        " GROUP BY t.id HAVING count(e.seq) <> t.event_seq OR coalesce(max(e.seq), 0) <> t.event_seq"
        " OR t.event_seq = 0",
    ),
    Invariant(
        "head_is_the_last_event", "The task carries the hash of its last event.",
        "SELECT t.id, 'another head than event ' || t.event_seq FROM runtime_app_task t LEFT JOIN runtime_app_event e"
        " ON e.task_id = t.id AND e.seq = t.event_seq WHERE e.chain IS DISTINCT FROM t.event_head",
    ),
    Invariant(
        "first_event_opens", "Every task begins with its request, once.",
        "SELECT task_id, type || ' as event ' || seq FROM runtime_app_event WHERE (type = 'task.opened') <> (seq = 1)",
    ),
    Invariant(
        "one_end_event", "A task that has ended says so once, in the event of its status; no other task does.",
        "SELECT t.id, t.status || ' with ' || coalesce(string_agg(e.type, ', '), 'no end event')"
        f" FROM runtime_app_task t LEFT JOIN runtime_app_event e ON e.task_id = t.id AND e.type IN {_ENDS}"
        " GROUP BY t.id"
        f" HAVING count(e.seq) <> CASE WHEN t.status IN {_FINAL} THEN 1 ELSE 0 END"
        f" OR (t.status IN {_FINAL} AND min(e.type) <> 'task.' || t.status)",
    ),
    Invariant(
        "payload_has_its_event", "What an event said belongs to an event.",
        "SELECT p.task_id, 'payload ' || p.seq FROM runtime_app_eventpayload p LEFT JOIN runtime_app_event e"
        " ON e.task_id = p.task_id AND e.seq = p.seq WHERE e.seq IS NULL",
    ),
    Invariant(
        "told_once", "The outbox holds one intent for each thing to be told.",
        "SELECT dedup_key, count(*) || ' intents' FROM runtime_app_intent GROUP BY dedup_key HAVING count(*) > 1",
    ),
    Invariant(
        "completed_is_told", "A refund that was completed is told, or to be told, to the order system.",
        "SELECT t.id, 'nothing tells the order system of operation ' || o.id FROM runtime_app_task t"
        " JOIN runtime_app_operation o ON o.task_id = t.id AND o.state IN ('succeeded', 'returned')"
        f" WHERE t.status = 'completed' AND NOT {excused('t', 'o')} AND NOT EXISTS (SELECT 1 FROM runtime_app_intent i"
        " WHERE i.task_id = t.id AND i.dedup_key = 'order.record_refund:' || o.id || ':succeeded')",
    ),
    Invariant(
        "one_task_per_request", "One request key of a tenant is one task.",
        "SELECT request_key, count(*) || ' tasks' FROM runtime_app_task GROUP BY tenant_id, request_key"
        " HAVING count(*) > 1",
    ),
    Invariant("tenants_are_apart", "No row belongs to another tenant than the row it is part of.", _FOREIGN),
)
