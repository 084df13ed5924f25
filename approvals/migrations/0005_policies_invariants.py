"""What was agreed on stays: rules, votes and notes never change; a vote may be taken back once, while it is open."""

from django.db import migrations

SQL = """
CREATE OR REPLACE FUNCTION approval_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- An approval that was given may still be superseded, when what it was given for no longer holds at execution.
    IF NOT (OLD.state = 'open' OR (OLD.state = 'approved' AND NEW.state = 'superseded'))
        OR (NEW.fingerprint, NEW.facts, NEW.task_id, NEW.tenant_id, NEW.rules, NEW.policy_id, NEW.policy_version,
            NEW.quorum, NEW.deadline_at, NEW.asked_at)
        IS DISTINCT FROM (OLD.fingerprint, OLD.facts, OLD.task_id, OLD.tenant_id, OLD.rules, OLD.policy_id,
            OLD.policy_version, OLD.quorum, OLD.deadline_at, OLD.asked_at) THEN
        RAISE EXCEPTION 'approval % is closed or would change what it asks', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION decision_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked record;
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'decisions are never deleted' USING ERRCODE = 'check_violation';
    END IF;
    SELECT a.state, t.requester_id INTO asked FROM approvals_approval a JOIN runtime_app_task t ON t.id = a.task_id
        WHERE a.id = NEW.approval_id;
    IF asked.state <> 'open' THEN
        RAISE EXCEPTION 'approval % is closed', NEW.approval_id USING ERRCODE = 'check_violation';
    END IF;
    IF asked.requester_id IN (NEW.person_id, NEW.for_person_id) THEN
        RAISE EXCEPTION 'nobody decides what the same person asked for' USING ERRCODE = 'check_violation';
    END IF;
    IF TG_OP = 'UPDATE' AND (OLD.withdrawn_at IS NOT NULL OR NEW.withdrawn_at IS NULL
        OR to_jsonb(NEW) - 'withdrawn_at' IS DISTINCT FROM to_jsonb(OLD) - 'withdrawn_at') THEN
        RAISE EXCEPTION 'a decision is taken back once, and changes in nothing else' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER decision_stays ON approvals_decision;
CREATE TRIGGER decision_guard BEFORE INSERT OR UPDATE OR DELETE ON approvals_decision
    FOR EACH ROW EXECUTE FUNCTION decision_guard();

CREATE TRIGGER note_stays BEFORE UPDATE OR DELETE ON approvals_note FOR EACH ROW EXECUTE FUNCTION never_changes();

CREATE FUNCTION policy_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR (NEW.tenant_id, NEW.workflow, NEW.number, NEW.rules, NEW.why, NEW.proposed_by_id,
        NEW.proposed_at) IS DISTINCT FROM (OLD.tenant_id, OLD.workflow, OLD.number, OLD.rules, OLD.why,
        OLD.proposed_by_id, OLD.proposed_at) OR NOT (NEW.state = OLD.state
        OR (OLD.state = 'proposed' AND NEW.state IN ('in_force', 'refused', 'withdrawn'))
        OR (OLD.state = 'in_force' AND NEW.state = 'replaced')) THEN
        RAISE EXCEPTION 'policy % would change what it says', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER policy_guard BEFORE UPDATE OR DELETE ON approvals_policy
    FOR EACH ROW EXECUTE FUNCTION policy_guard();
"""
BACK = """
DROP TRIGGER policy_guard ON approvals_policy; DROP FUNCTION policy_guard();
DROP TRIGGER note_stays ON approvals_note;
DROP TRIGGER decision_guard ON approvals_decision; DROP FUNCTION decision_guard();
CREATE TRIGGER decision_stays BEFORE UPDATE OR DELETE ON approvals_decision
    FOR EACH ROW EXECUTE FUNCTION never_changes();
CREATE OR REPLACE FUNCTION approval_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (OLD.state = 'open' OR (OLD.state = 'approved' AND NEW.state = 'superseded')) OR (NEW.fingerprint, NEW.facts, NEW.task_id, NEW.tenant_id)
        IS DISTINCT FROM (OLD.fingerprint, OLD.facts, OLD.task_id, OLD.tenant_id) THEN
        RAISE EXCEPTION 'approval % is closed or would change what it asks', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0004_policies"), ("runtime_app", "0005_money_truth_invariants")]
    operations = [migrations.RunSQL(SQL, BACK)]
