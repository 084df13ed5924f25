"""Invariants of tasks and of what people said to them."""

from __future__ import annotations

from runtime_app.invariants.types import Invariant, excused, listed
from runtime_app.states import BEFORE_SUBMISSION, FINAL, UNRESOLVED, WAITING_FOR_PEOPLE

_FINAL, _UNRESOLVED = listed(FINAL), listed(UNRESOLVED)
_DONE = listed({"succeeded", "returned"})

TASKS = (
    Invariant(
        "end_has_no_next_step", "A task that has ended has no owner and nothing due.",
        "SELECT id, status || ' with owner ' || coalesce(lease_owner, 'none') || ', due '"
        " || coalesce(due_at::text, 'never')"
        f" FROM runtime_app_task WHERE status IN {_FINAL} AND (lease_owner IS NOT NULL OR due_at IS NOT NULL)",
    ),
    Invariant(
        "somebody_looks",
        "A task that has not ended waits for people, is parked, has a time of its next look, or has an open case.",
        "SELECT t.id, t.status || ' with nobody to look at it' FROM runtime_app_task t"
        f" WHERE t.status NOT IN {listed(FINAL | WAITING_FOR_PEOPLE)} AND t.parked_reason IS NULL AND t.due_at IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM runtime_app_case c WHERE c.task_id = t.id AND c.state = 'open')",
    ),
    Invariant(
        "lease_ends", "A task that somebody owns has a time at which the lease ends.",
        "SELECT id, 'owned by ' || lease_owner FROM runtime_app_task WHERE lease_owner IS NOT NULL AND due_at IS NULL",
    ),
    Invariant(
        "completed_means_done",
        "A refund is completed exactly when one operation of it succeeded, or people know why not.",
        "SELECT t.id, t.status || ' with ' || count(o.id) || ' operations that succeeded' FROM runtime_app_task t"
        f" LEFT JOIN runtime_app_operation o ON o.task_id = t.id AND o.state IN {_DONE}"
        f" WHERE t.workflow = 'refund' AND NOT {excused('t')} GROUP BY t.id"
        " HAVING count(o.id) <> CASE WHEN t.status = 'completed' THEN 1 ELSE 0 END",
    ),
    Invariant(
        "other_ends_moved_nothing",
        "No operation of a cancelled, rejected or failed task succeeded, or people know of it.",
        "SELECT t.id, t.status || ', yet operation ' || o.id || ' ' || o.state FROM runtime_app_task t"
        f" JOIN runtime_app_operation o ON o.task_id = t.id AND o.state IN {_DONE}"
        f" WHERE t.status IN {listed(FINAL - {'completed'})} AND NOT {excused('t', 'o')}",
    ),
    Invariant(
        "end_leaves_nothing_open", "No operation of a task that has ended is still in doubt.",
        "SELECT t.id, t.status || ', yet operation ' || o.id || ' is ' || o.state FROM runtime_app_task t"
        f" JOIN runtime_app_operation o ON o.task_id = t.id AND o.state IN {_UNRESOLVED} WHERE t.status IN {_FINAL}",
    ),
    Invariant(
        "operation_fits_task",
        "An executing refund is being submitted, a reconciling one unknown or pending, and before that nothing is.",
        "SELECT t.id, t.status || ' with its operation ' || coalesce(o.state, 'missing') FROM runtime_app_task t"
        " LEFT JOIN runtime_app_operation o ON o.task_id = t.id AND o.ordinal = t.ordinal WHERE t.workflow = 'refund'"
        " AND ((t.status = 'executing' AND o.state IS DISTINCT FROM 'submitting')"
        " OR (t.status = 'reconciling' AND coalesce(o.state, '') NOT IN ('unknown', 'pending'))"
        f" OR (t.status IN {listed(BEFORE_SUBMISSION)} AND coalesce(o.state, 'prepared') <> 'prepared'))",
    ),
    Invariant(
        "one_open_question", "A task has one open approval while it waits for people to decide, and none otherwise.",
        "SELECT t.id, t.status || ' with ' || count(a.id) || ' open approvals' FROM runtime_app_task t"
        " LEFT JOIN approvals_approval a ON a.task_id = t.id AND a.state = 'open' GROUP BY t.id"
        " HAVING count(a.id) <> CASE WHEN t.status = 'waiting_approval' THEN 1 ELSE 0 END",
    ),
    Invariant(
        "decider_is_not_requester", "Nobody decides what the same person asked for.",
        "SELECT d.id, 'task ' || t.id || ' asked for and decided by person ' || d.person_id FROM approvals_decision d"
        " JOIN approvals_approval a ON a.id = d.approval_id JOIN runtime_app_task t ON t.id = a.task_id"
        " WHERE t.requester_id IN (d.person_id, d.for_person_id)",
    ),
    Invariant(
        "decision_saw_what_was_asked", "A decision is about exactly what its approval asks.",
        "SELECT d.id, 'decided on other facts than approval ' || a.id FROM approvals_decision d"
        " JOIN approvals_approval a ON a.id = d.approval_id WHERE d.fingerprint <> a.fingerprint",
    ),
    Invariant(
        "decision_in_time", "Nobody decides when the time to decide is over.",
        "SELECT d.id, 'decided at ' || d.decided_at || ', yet approval ' || a.id || ' ended at ' || a.deadline_at"
        " FROM approvals_decision d JOIN approvals_approval a ON a.id = d.approval_id"
        " WHERE d.decided_at >= a.deadline_at",
    ),
    Invariant(
        "decider_did_not_change_it", "Nobody decides a request that the same person has changed.",
        "SELECT d.id, 'task ' || t.id || ' changed and decided by person ' || d.person_id FROM approvals_decision d"
        " JOIN approvals_approval a ON a.id = d.approval_id JOIN runtime_app_task t ON t.id = a.task_id"
        " WHERE a.state IN ('open', 'approved') AND d.withdrawn_at IS NULL"
        " AND (t.state -> 'shaped_by' @> to_jsonb(d.person_id) OR t.state -> 'shaped_by' @> to_jsonb(d.for_person_id))",
    ),
    Invariant(
        "one_voice_each", "Of an approval nobody is heard twice, neither by an own word nor by a substitute's.",
        "SELECT d.id, 'person ' || v.person || ' is heard more than once of approval ' || d.approval_id"
        " FROM approvals_decision d CROSS JOIN LATERAL (VALUES (d.person_id), (d.for_person_id)) v(person)"
        " WHERE d.withdrawn_at IS NULL AND (d.for_person_id = d.person_id OR EXISTS (SELECT 1 FROM approvals_decision o"
        " WHERE o.approval_id = d.approval_id AND o.id <> d.id AND o.withdrawn_at IS NULL"
        " AND v.person IN (o.person_id, o.for_person_id)))",
    ),
    Invariant(
        "approved_by_every_review", "What is approved has as many agreements in each review as its rules ask for.",
        "SELECT a.id, 'the ' || (r ->> 'name') || ' review lacks people' FROM approvals_approval a"
        " CROSS JOIN LATERAL jsonb_array_elements(coalesce(a.rules -> 'reviews', '[]')) r"
        " WHERE a.state = 'approved' AND (r ->> 'quorum')::int > (SELECT count(*) FROM approvals_decision d"
        " WHERE d.approval_id = a.id AND d.review = r ->> 'name' AND d.verdict = 'approve' AND d.withdrawn_at IS NULL)",
    ),
    Invariant(
        "end_is_somebodys_word", "What was rejected, or sent back with a question, was so by one person's word.",
        "SELECT a.id, a.state || ', and nobody said so' FROM approvals_approval a"
        " WHERE a.state IN ('rejected', 'input_asked') AND NOT EXISTS (SELECT 1 FROM approvals_decision d"
        " WHERE d.approval_id = a.id AND d.withdrawn_at IS NULL"
        " AND d.verdict = CASE a.state WHEN 'rejected' THEN 'reject' ELSE 'ask_input' END)",
    ),
    Invariant(
        "approval_used_is_valid",
        "What was submitted above the threshold rests on a given approval of exactly these facts by enough people.",
        "SELECT o.id, CASE WHEN a.id IS NULL THEN 'no approval' ELSE 'approval ' || a.id || ' is ' || a.state END"
        " FROM runtime_app_operation o"
        " LEFT JOIN approvals_approval a ON a.id::text = o.authority->>'approval' AND a.task_id = o.task_id"
        " WHERE o.state <> 'prepared' AND ((o.authority->>'approval') IS NOT NULL"
        " OR (o.authority->>'people_needed')::boolean"
        " OR o.amount_minor > (o.authority->>'threshold_minor')::bigint) AND (a.id IS NULL OR a.state <> 'approved'"
        " OR a.fingerprint <> o.fingerprint OR a.quorum > (SELECT count(*) FROM approvals_decision d"
        " WHERE d.approval_id = a.id AND d.verdict = 'approve' AND d.withdrawn_at IS NULL))",
    ),
)
