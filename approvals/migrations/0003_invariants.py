"""A closed approval stays closed, and what a person said is never changed."""

from django.db import migrations

SQL = """
CREATE FUNCTION approval_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- An approval that was given may still be superseded, when what it was given for no longer holds at execution.
    IF NOT (OLD.state = 'open' OR (OLD.state = 'approved' AND NEW.state = 'superseded')) OR (NEW.fingerprint, NEW.facts, NEW.task_id, NEW.tenant_id)
        IS DISTINCT FROM (OLD.fingerprint, OLD.facts, OLD.task_id, OLD.tenant_id) THEN
        RAISE EXCEPTION 'approval % is closed or would change what it asks', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approval_guard BEFORE UPDATE ON approvals_approval FOR EACH ROW EXECUTE FUNCTION approval_guard();
CREATE TRIGGER approval_stays BEFORE DELETE ON approvals_approval FOR EACH ROW EXECUTE FUNCTION never_changes();
CREATE TRIGGER decision_stays BEFORE UPDATE OR DELETE ON approvals_decision
    FOR EACH ROW EXECUTE FUNCTION never_changes();
"""
BACK = """
DROP TRIGGER decision_stays ON approvals_decision; DROP TRIGGER approval_stays ON approvals_approval;
DROP TRIGGER approval_guard ON approvals_approval; DROP FUNCTION approval_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_initial"), ("runtime_app", "0002_invariants")]
    operations = [migrations.RunSQL(SQL, BACK)]
