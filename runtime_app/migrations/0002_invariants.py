"""What the database holds by itself: legal moves, revision steps, append-only records, gapless events, frozen requests."""

from django.db import migrations

TASKS = """
CREATE FUNCTION task_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'queued' OR NEW.revision <> 1 THEN
            RAISE EXCEPTION 'a task starts queued at revision 1' USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.status IS DISTINCT FROM OLD.status THEN
        IF NOT (OLD.status || '>' || NEW.status) = ANY (ARRAY[
            'executing>completed',
            'executing>failed',
            'executing>ready',
            'executing>reconciling',
            'queued>cancelled',
            'queued>failed',
            'queued>ready',
            'queued>reconciling',
            'queued>rejected',
            'queued>waiting_approval',
            'queued>waiting_input',
            'ready>cancelled',
            'ready>executing',
            'ready>failed',
            'ready>queued',
            'ready>reconciling',
            'reconciling>cancelled',
            'reconciling>completed',
            'reconciling>failed',
            'waiting_approval>cancelled',
            'waiting_approval>queued',
            'waiting_approval>ready',
            'waiting_approval>rejected',
            'waiting_approval>waiting_input',
            'waiting_input>cancelled',
            'waiting_input>queued'
        ]) THEN
            RAISE EXCEPTION 'illegal move of task % from % to %', OLD.id, OLD.status, NEW.status
                USING ERRCODE = 'check_violation';
        END IF;
        IF NEW.revision <> OLD.revision + 1 THEN
            RAISE EXCEPTION 'a change of status is one revision (task %)', OLD.id USING ERRCODE = 'check_violation';
        END IF;
    ELSIF NEW.revision NOT IN (OLD.revision, OLD.revision + 1) THEN
        RAISE EXCEPTION 'a revision grows by one (task %)', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.fence < OLD.fence OR NEW.event_seq < OLD.event_seq THEN
        RAISE EXCEPTION 'fence and event count never go back (task %)', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.tenant_id <> OLD.tenant_id OR NEW.request_key <> OLD.request_key OR NEW.workflow <> OLD.workflow THEN
        RAISE EXCEPTION 'a task keeps its tenant, request key and workflow' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER task_guard BEFORE INSERT OR UPDATE ON runtime_app_task FOR EACH ROW EXECUTE FUNCTION task_guard();

CREATE FUNCTION never_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER task_stays BEFORE DELETE ON runtime_app_task FOR EACH ROW EXECUTE FUNCTION never_changes();
"""
TASKS_BACK = """
DROP TRIGGER task_stays ON runtime_app_task; DROP TRIGGER task_guard ON runtime_app_task; DROP FUNCTION task_guard();
DROP FUNCTION never_changes();
"""

RECORDS = """
CREATE TRIGGER event_stays BEFORE UPDATE OR DELETE ON runtime_app_event
    FOR EACH ROW EXECUTE FUNCTION never_changes();
CREATE TRIGGER event_stays_whole BEFORE TRUNCATE ON runtime_app_event EXECUTE FUNCTION never_changes();
CREATE TRIGGER payload_stays BEFORE UPDATE ON runtime_app_eventpayload FOR EACH ROW EXECUTE FUNCTION never_changes();
CREATE TRIGGER evidence_stays BEFORE UPDATE OR DELETE ON runtime_app_evidence
    FOR EACH ROW EXECUTE FUNCTION never_changes();
CREATE TRIGGER evidence_stays_whole BEFORE TRUNCATE ON runtime_app_evidence EXECUTE FUNCTION never_changes();

CREATE FUNCTION events_are_gapless() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE bad uuid;
BEGIN
    SELECT f.task_id INTO bad
    FROM (SELECT task_id, tenant_id, min(seq) AS low, max(seq) AS high, count(*) AS many
          FROM fresh GROUP BY task_id, tenant_id) f
    JOIN runtime_app_task t ON t.id = f.task_id
    WHERE f.many <> f.high - f.low + 1 OR f.high > t.event_seq OR f.tenant_id <> t.tenant_id
       -- Ordered, so that it is a look into the index whatever the planner believes of the table's size.
       OR coalesce((SELECT e.seq FROM runtime_app_event e WHERE e.task_id = f.task_id AND e.seq < f.low
                    ORDER BY e.seq DESC LIMIT 1), 0) <> f.low - 1
    LIMIT 1;
    IF bad IS NOT NULL THEN
        RAISE EXCEPTION 'a gap in the events of task %, or another tenant than its own', bad USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER events_are_gapless AFTER INSERT ON runtime_app_event REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION events_are_gapless();
"""
RECORDS_BACK = """
DROP TRIGGER events_are_gapless ON runtime_app_event; DROP FUNCTION events_are_gapless();
DROP TRIGGER evidence_stays_whole ON runtime_app_evidence; DROP TRIGGER evidence_stays ON runtime_app_evidence;
DROP TRIGGER payload_stays ON runtime_app_eventpayload;
DROP TRIGGER event_stays_whole ON runtime_app_event; DROP TRIGGER event_stays ON runtime_app_event;
"""

OPERATIONS = """
CREATE FUNCTION operation_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state IS DISTINCT FROM OLD.state AND NOT (OLD.state || '>' || NEW.state) = ANY (ARRAY[
            'failed>succeeded',
            'not_executed>succeeded',
            'pending>failed',
            'pending>not_executed',
            'pending>succeeded',
            'pending>unknown',
            'prepared>not_executed',
            'prepared>submitting',
            'submitting>failed',
            'submitting>pending',
            'submitting>prepared',
            'submitting>succeeded',
            'submitting>unknown',
            'succeeded>returned',
            'unknown>failed',
            'unknown>not_executed',
            'unknown>pending',
            'unknown>succeeded'
    ]) THEN
        RAISE EXCEPTION 'illegal move of operation % from % to %', OLD.id, OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    IF (NEW.idempotency_key, NEW.request_body, NEW.request_sha256, NEW.amount_minor, NEW.currency, NEW.payment_ref, NEW.tenant_id,
        NEW.task_id) IS DISTINCT FROM (OLD.idempotency_key, OLD.request_body, OLD.request_sha256, OLD.amount_minor,
        OLD.currency, OLD.payment_ref, OLD.tenant_id, OLD.task_id) THEN
        RAISE EXCEPTION 'the request of operation % is frozen', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER operation_guard BEFORE UPDATE ON runtime_app_operation FOR EACH ROW EXECUTE FUNCTION operation_guard();
CREATE TRIGGER operation_stays BEFORE DELETE ON runtime_app_operation FOR EACH ROW EXECUTE FUNCTION never_changes();

CREATE FUNCTION hold_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'held' OR NEW.amount_minor <> OLD.amount_minor THEN
        RAISE EXCEPTION 'hold % has ended or would change its amount', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hold_guard BEFORE UPDATE ON runtime_app_hold FOR EACH ROW EXECUTE FUNCTION hold_guard();

INSERT INTO runtime_app_installation (id, restore_epoch) VALUES (1, 1);
"""
OPERATIONS_BACK = """
DELETE FROM runtime_app_installation;
DROP TRIGGER hold_guard ON runtime_app_hold; DROP FUNCTION hold_guard();
DROP TRIGGER operation_stays ON runtime_app_operation;
DROP TRIGGER operation_guard ON runtime_app_operation; DROP FUNCTION operation_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("runtime_app", "0001_initial")]
    operations = [
        migrations.RunSQL(TASKS, TASKS_BACK),
        migrations.RunSQL(RECORDS, RECORDS_BACK),
        migrations.RunSQL(OPERATIONS, OPERATIONS_BACK),
    ]
