"""The floor's statements for a whole refund: a claim, and one for each step that makes it durable."""

from __future__ import annotations

from tests.bench.floor import CLAIM, RECORDS

API_VERSION = "2026-10-28.endive"
CLAIM_REFUNDS = CLAIM.format(workflow="refund", more=", order_ref, amount_minor, currency, request_key")

_MOVE = """
WITH w AS MATERIALIZED (SELECT * FROM unnest(%s::uuid[], %s::int[], %s::bigint[], %s::int[], %s::text[], {arrays})
    AS w(id, was_revision, fence, seq, head, {names})
), moved AS (
    UPDATE runtime_app_task AS t SET status = '{to}', status_since = %s, revision = t.revision + 1, starts = 0,
        event_seq = w.seq, event_head = decode(w.head, 'hex'){columns}
    FROM w WHERE t.id = w.id AND t.revision = w.was_revision AND t.status = '{was}' AND t.fence = w.fence
    RETURNING t.id, t.tenant_id, t.fence
), """


def _move(was: str, to: str, columns: str, **given: str) -> str:
    return _MOVE.format(
        was=was, to=to, columns=columns, names=", ".join(given), arrays=", ".join(f"%s::{k}[]" for k in given.values())
    )


READY = _move(
    "queued", "ready", ", payment_ref = w.payment_ref, fingerprint = w.fingerprint, state = w.state",
    payment_ref="text", fingerprint="text", state="jsonb", balance_id="uuid", hold_id="uuid", order_ref="text",
    currency="text", captured="bigint", amount="bigint", version="bigint",
) + """kept AS (
    INSERT INTO runtime_app_balance AS b (id, tenant_id, account, order_ref, payment_ref, currency, captured_minor,
        external_minor, excess_minor, read_version, read_at, reserved_minor, refunded_minor)
    SELECT w.balance_id, m.tenant_id, 'stripe', w.order_ref, w.payment_ref, w.currency, w.captured, 0, 0, w.version, %s,
        w.amount, 0
    FROM w JOIN moved m USING (id)
    ON CONFLICT (tenant_id, account, payment_ref) DO UPDATE SET captured_minor = excluded.captured_minor,
        read_version = excluded.read_version, read_at = excluded.read_at,
        reserved_minor = b.reserved_minor + excluded.reserved_minor
    RETURNING id, payment_ref
), held AS (
    INSERT INTO runtime_app_hold (id, tenant_id, balance_id, task_id, amount_minor, state, taken_at)
    SELECT w.hold_id, m.tenant_id, kept.id, m.id, w.amount, 'held', %s
    FROM w JOIN moved m USING (id) JOIN kept USING (payment_ref)
), """ + RECORDS + " SELECT id::text FROM moved"

EXECUTING = _move(
    "ready", "executing", "", operation_id="uuid", call_id="uuid", order_ref="text", payment_ref="text",
    amount="bigint", currency="text", body="text", body_sha256="text", fingerprint="text", authority="jsonb",
) + f"""frozen AS (
    INSERT INTO runtime_app_operation (id, tenant_id, task_id, effect, ordinal, account, order_ref, payment_ref,
        amount_minor, currency, exponent, idempotency_key, request_body, request_sha256, api_version, authority,
        fingerprint, state, first_submit_at, last_possible_send_at, next_check_at, created_at, checks, absents,
        resends, resend_disabled, note)
    SELECT w.operation_id, m.tenant_id, m.id, 'refund', 1, 'stripe', w.order_ref, w.payment_ref, w.amount, w.currency,
        2, w.operation_id::text, w.body::bytea, w.body_sha256, '{API_VERSION}', w.authority, w.fingerprint,
        'submitting', %s, %s, %s, %s, 0, 0, 0, false, ''
    FROM w JOIN moved m USING (id)
), calling AS (
    INSERT INTO runtime_app_call (id, tenant_id, operation_id, kind, fence, started_at, finding)
    SELECT w.call_id, m.tenant_id, w.operation_id, 'submit', m.fence, %s, '' FROM w JOIN moved m USING (id)
), """ + RECORDS + " SELECT id::text FROM moved"

COMPLETED = _move(
    "executing", "completed", ", due_at = NULL, lease_owner = NULL", operation_id="uuid", call_id="uuid",
    evidence_id="uuid", intent_id="uuid", request_id="text", body_sha256="text", body="jsonb", provider_ref="text",
    payload="jsonb",
) + f"""seen AS (
    INSERT INTO runtime_app_evidence (id, tenant_id, operation_id, call_id, kind, finding, request_line, http_status,
        provider_request_id, body_sha256, body, pages, complete, consistency, adapter_version, api_version, observed_at)
    SELECT w.evidence_id, m.tenant_id, w.operation_id, w.call_id, 'provider_response', 'succeeded', 'POST /v1/refunds',
        200, w.request_id, w.body_sha256, w.body, 1, true, 'strong', 'by hand', '{API_VERSION}', %s
    FROM w JOIN moved m USING (id)
), called AS (
    UPDATE runtime_app_call c SET ended_at = %s, outcome = 'succeeded', finding = 'succeeded'
    FROM w JOIN moved m USING (id) WHERE c.id = w.call_id
), unheld AS (
    UPDATE runtime_app_hold h SET state = 'consumed', ended_at = %s FROM moved m
    WHERE h.task_id = m.id AND h.state = 'held' RETURNING h.balance_id, h.amount_minor
), settled AS (
    UPDATE runtime_app_balance b SET reserved_minor = b.reserved_minor - u.amount,
        refunded_minor = b.refunded_minor + u.amount
    FROM (SELECT balance_id, sum(amount_minor) AS amount FROM unheld GROUP BY balance_id) u WHERE b.id = u.balance_id
), known AS (
    UPDATE runtime_app_operation o SET state = 'succeeded', next_check_at = NULL, resolved_by_id = w.evidence_id,
        provider_ref = w.provider_ref
    FROM w JOIN moved m USING (id) WHERE o.id = w.operation_id
), telling AS (
    INSERT INTO runtime_app_intent
        (id, tenant_id, task_id, kind, dedup_key, payload, due_at, created_at, tries, last_error)
    SELECT w.intent_id, m.tenant_id, m.id, 'order.record_refund',
        'order.record_refund:' || w.operation_id || ':succeeded', w.payload, %s, %s, 0, ''
    FROM w JOIN moved m USING (id) ON CONFLICT (dedup_key) DO NOTHING
), """ + RECORDS + " SELECT id::text FROM moved"
