"""Invariants of operations, calls, balances and holds."""

from __future__ import annotations

from runtime_app.invariants.types import KNOWN_CASE, Invariant, excused, listed
from runtime_app.states import UNRESOLVED

_UNRESOLVED = listed(UNRESOLVED)
_ENDS = listed({"succeeded", "failed", "not_executed", "returned"})
_SAME_PAYMENT = "b.tenant_id = o.tenant_id AND b.account = o.account AND b.payment_ref = o.payment_ref"

MONEY = (
    Invariant(
        "payment_within_captured", "Reserved, refunded and outside refunds stay within what was captured.",
        "SELECT payment_ref, reserved_minor || ' reserved, ' || refunded_minor || ' refunded, ' || external_minor"
        " || ' outside, ' || excess_minor || ' known excess of ' || captured_minor FROM runtime_app_balance"
        " WHERE reserved_minor + refunded_minor + external_minor > captured_minor + excess_minor",
    ),
    Invariant(
        "one_operation_per_refund",
        "An operation that succeeded names one refund of the provider, and no other operation names the same.",
        "SELECT o.id, 'refund ' || coalesce(o.provider_ref, 'not named') FROM runtime_app_operation o"
        " WHERE (o.state = 'succeeded' AND o.provider_ref IS NULL) OR EXISTS (SELECT 1 FROM runtime_app_operation other"
        " WHERE other.account = o.account AND other.provider_ref = o.provider_ref AND other.id <> o.id)",
    ),
    Invariant(
        "request_stays_frozen", "An operation's key is its id, and its request is the one that was digested.",
        "SELECT id, CASE WHEN idempotency_key <> id::text THEN 'key ' || idempotency_key ELSE 'another body' END"
        " FROM runtime_app_operation WHERE idempotency_key <> id::text"
        " OR request_sha256 <> encode(sha256(request_body), 'hex')",
    ),
    Invariant(
        "resend_is_allowed",
        "The same request is sent again only after a complete look found nothing, and every resend is counted.",
        "SELECT o.id, 'resend ' || c.id || ' without a complete look before it' FROM runtime_app_call c"
        " JOIN runtime_app_operation o ON o.id = c.operation_id WHERE c.kind = 'resend'"
        " AND NOT EXISTS (SELECT 1 FROM runtime_app_evidence e WHERE e.operation_id = o.id AND e.complete"
        " AND e.finding = 'absent' AND e.consistency = 'strong' AND e.observed_at <= c.started_at)"
        " UNION ALL SELECT o.id, count(c.id) || ' resends, counted as ' || o.resends FROM runtime_app_operation o"
        " LEFT JOIN runtime_app_call c ON c.operation_id = o.id AND c.kind = 'resend'"
        " GROUP BY o.id HAVING count(c.id) <> o.resends",
    ),
    Invariant(
        "call_precedes_send", "A call is written down before anything is sent, and before anything is seen of it.",
        "SELECT o.id, 'submitted without a call' FROM runtime_app_operation o WHERE o.first_submit_at IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM runtime_app_call c WHERE c.operation_id = o.id AND c.kind = 'submit'"
        " AND c.started_at <= o.first_submit_at)"
        " UNION ALL SELECT e.operation_id, 'evidence ' || e.id || ' older than its call, or of another operation'"
        " FROM runtime_app_evidence e JOIN runtime_app_call c ON c.id = e.call_id"
        " WHERE e.observed_at < c.started_at OR c.operation_id <> e.operation_id",
    ),
    Invariant(
        "not_sent_is_proved", "An operation counts as not sent only when its last submission says so.",
        "SELECT o.id, 'prepared, its last submission ' || coalesce(l.outcome, 'without an answer')"
        " FROM runtime_app_operation o JOIN LATERAL (SELECT c.outcome FROM runtime_app_call c"
        " WHERE c.operation_id = o.id AND c.kind = 'submit' ORDER BY c.started_at DESC, c.id DESC LIMIT 1) l ON true"
        " WHERE o.state = 'prepared' AND l.outcome IS DISTINCT FROM 'not_sent'",
    ),
    Invariant(
        "hold_as_promised",
        "A refund holds its amount once from ready until its outcome is proved; a completed one has consumed it.",
        "SELECT t.id, t.status || ' with ' || count(h.id) FILTER (WHERE h.state = 'held') || ' held and '"
        " || count(h.id) FILTER (WHERE h.state = 'consumed') || ' consumed' FROM runtime_app_task t"
        f" LEFT JOIN runtime_app_hold h ON h.task_id = t.id WHERE NOT {excused('t')} GROUP BY t.id"
        " HAVING count(h.id) FILTER (WHERE h.state = 'held') <> CASE WHEN t.workflow = 'refund'"
        " AND t.status IN ('ready', 'executing', 'reconciling') THEN 1 ELSE 0 END"
        " OR count(h.id) FILTER (WHERE h.state = 'consumed') <> CASE WHEN t.workflow = 'refund'"
        " AND t.status = 'completed' THEN 1 ELSE 0 END",
    ),
    Invariant(
        "hold_fits_task", "What is held or consumed is the task's own amount of the task's own payment.",
        "SELECT h.id, h.amount_minor || ' of ' || b.payment_ref || ' for task ' || t.id FROM runtime_app_hold h"
        " JOIN runtime_app_task t ON t.id = h.task_id JOIN runtime_app_balance b ON b.id = h.balance_id"
        f" WHERE h.state <> 'released' AND NOT {excused('t')} AND (h.amount_minor IS DISTINCT FROM t.amount_minor"
        " OR b.payment_ref IS DISTINCT FROM t.payment_ref)",
    ),
    Invariant(
        "end_has_evidence",
        "An operation that has ended rests on evidence of its own; an absence on a complete look or two people's word.",
        "SELECT o.id, o.state || ' on ' || coalesce(e.kind || ' ' || e.finding, 'nothing') FROM runtime_app_operation o"
        f" LEFT JOIN runtime_app_evidence e ON e.id = o.resolved_by_id WHERE o.state IN {_ENDS} AND (e.id IS NULL"
        " OR e.operation_id <> o.id OR (o.state = 'not_executed' AND NOT (e.complete AND e.finding = 'absent')"
        " AND e.kind <> 'human_attestation'))",
    ),
    Invariant(
        "two_people_declare",
        "What rests on people's word was declared by two of them on the same evidence, neither of them its requester.",
        "SELECT e.operation_id, e.finding || ' by ' || count(DISTINCT d.person_id) FROM runtime_app_evidence e"
        " JOIN runtime_app_operation o ON o.id = e.operation_id JOIN runtime_app_task t ON t.id = o.task_id"
        " LEFT JOIN runtime_app_caseentry d ON d.case_id = e.case_id AND d.kind = 'declared'"
        " AND d.evidence_sha256 = e.body ->> 'evidence_sha256' AND d.person_id IS DISTINCT FROM t.requester_id"
        " WHERE e.kind = 'human_attestation' GROUP BY e.id, e.operation_id, e.finding"
        " HAVING count(DISTINCT d.person_id) < 2",
    ),
    Invariant(
        "balance_is_the_sum", "What a balance says is reserved and refunded is the sum of its holds.",
        "SELECT b.payment_ref, b.reserved_minor || ' reserved, ' || b.refunded_minor || ' refunded; its holds say '"
        " || coalesce(sum(h.amount_minor) FILTER (WHERE h.state = 'held'), 0) || ' and '"
        " || coalesce(sum(h.amount_minor) FILTER (WHERE h.state = 'consumed'), 0) FROM runtime_app_balance b"
        " LEFT JOIN runtime_app_hold h ON h.balance_id = b.id GROUP BY b.id"
        " HAVING b.reserved_minor <> coalesce(sum(h.amount_minor) FILTER (WHERE h.state = 'held'), 0)"
        " OR b.refunded_minor <> coalesce(sum(h.amount_minor) FILTER (WHERE h.state = 'consumed'), 0)",
    ),
    Invariant(
        "refunded_is_what_succeeded", "What a balance says is refunded is the sum of the operations that succeeded.",
        "SELECT b.payment_ref, b.refunded_minor || ' refunded, operations of ' || coalesce(sum(o.amount_minor), 0)"
        f" || ' succeeded' FROM runtime_app_balance b LEFT JOIN runtime_app_operation o ON {_SAME_PAYMENT}"
        " AND o.state = 'succeeded' GROUP BY b.id HAVING b.refunded_minor <> coalesce(sum(o.amount_minor), 0)"
        " AND NOT EXISTS (SELECT 1 FROM runtime_app_case c WHERE c.tenant_id = b.tenant_id"
        f" AND c.payment_ref = b.payment_ref AND {KNOWN_CASE})",
    ),
    Invariant(
        "doubt_is_looked_at", "An operation in doubt has a time of its next look, or an open case.",
        "SELECT o.id, o.state || ' with no next look and no open case' FROM runtime_app_operation o"
        f" WHERE o.state IN {_UNRESOLVED} AND o.next_check_at IS NULL AND NOT EXISTS (SELECT 1 FROM runtime_app_case c"
        " WHERE c.operation_id = o.id AND c.state = 'open')",
    ),
    Invariant(
        "one_currency", "An operation, its task and its payment are in one currency, and it moves the task's amount.",
        "SELECT o.id, o.amount_minor || ' ' || o.currency || ', the task ' || coalesce(t.amount_minor::text, 'none')"
        " || ' ' || coalesce(t.currency, 'none') || ', the payment ' || coalesce(b.currency, 'unknown')"
        " FROM runtime_app_operation o JOIN runtime_app_task t ON t.id = o.task_id"
        f" LEFT JOIN runtime_app_balance b ON {_SAME_PAYMENT} WHERE o.currency IS DISTINCT FROM b.currency"
        " OR (o.ordinal = t.ordinal AND (o.currency, o.amount_minor) IS DISTINCT FROM (t.currency, t.amount_minor))",
    ),
    Invariant(
        "one_in_doubt_per_payment", "At most one operation of a payment is in doubt.",
        "SELECT payment_ref, count(*) || ' operations in doubt' FROM runtime_app_operation"
        f" WHERE state IN {_UNRESOLVED} GROUP BY tenant_id, account, payment_ref HAVING count(*) > 1",
    ),
)
