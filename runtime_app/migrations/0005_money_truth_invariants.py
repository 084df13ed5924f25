"""What the database holds of cases, statements and money that came back."""

from django.db import migrations

GUARDS = """
CREATE OR REPLACE FUNCTION hold_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.amount_minor <> OLD.amount_minor
       OR NOT (OLD.state || '>' || NEW.state) = ANY (ARRAY['held>held', 'held>consumed', 'held>released', 'consumed>returned'])
    THEN
        RAISE EXCEPTION 'hold % has ended or would change its amount', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER case_entry_stays BEFORE UPDATE OR DELETE ON runtime_app_caseentry
    FOR EACH ROW EXECUTE FUNCTION never_changes();
CREATE TRIGGER case_entry_stays_whole BEFORE TRUNCATE ON runtime_app_caseentry EXECUTE FUNCTION never_changes();
CREATE TRIGGER case_stays BEFORE DELETE ON runtime_app_case FOR EACH ROW EXECUTE FUNCTION never_changes();
CREATE FUNCTION case_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state = 'closed' THEN
        RAISE EXCEPTION 'case % is closed', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    IF (NEW.tenant_id, NEW.class_name, NEW.dedup_key, NEW.opened_at, NEW.details) IS DISTINCT FROM
       (OLD.tenant_id, OLD.class_name, OLD.dedup_key, OLD.opened_at, OLD.details) THEN
        RAISE EXCEPTION 'what opened case % does not change', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER case_guard BEFORE UPDATE ON runtime_app_case FOR EACH ROW EXECUTE FUNCTION case_guard();

CREATE TRIGGER statement_stays BEFORE DELETE ON runtime_app_statement FOR EACH ROW EXECUTE FUNCTION never_changes();
CREATE TRIGGER statement_line_stays BEFORE DELETE ON runtime_app_statementline
    FOR EACH ROW EXECUTE FUNCTION never_changes();
CREATE FUNCTION statement_line_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.tenant_id, NEW.account_id, NEW.statement_id, NEW.day_id, NEW.ref, NEW.kind, NEW.amount_minor, NEW.currency,
        NEW.provider_ref, NEW.our_ref, NEW.payment_ref, NEW.occurred_at, NEW.raw_sha256) IS DISTINCT FROM
       (OLD.tenant_id, OLD.account_id, OLD.statement_id, OLD.day_id, OLD.ref, OLD.kind, OLD.amount_minor, OLD.currency,
        OLD.provider_ref, OLD.our_ref, OLD.payment_ref, OLD.occurred_at, OLD.raw_sha256) THEN
        RAISE EXCEPTION 'what the statement said in line % does not change', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER statement_line_guard BEFORE UPDATE ON runtime_app_statementline
    FOR EACH ROW EXECUTE FUNCTION statement_line_guard();

UPDATE runtime_app_balance SET external_order_minor = external_minor WHERE external_minor <> 0;
"""
GUARDS_BACK = """
DROP TRIGGER statement_line_guard ON runtime_app_statementline; DROP FUNCTION statement_line_guard();
DROP TRIGGER statement_line_stays ON runtime_app_statementline;
DROP TRIGGER statement_stays ON runtime_app_statement;
DROP TRIGGER case_guard ON runtime_app_case; DROP FUNCTION case_guard();
DROP TRIGGER case_stays ON runtime_app_case;
DROP TRIGGER case_entry_stays_whole ON runtime_app_caseentry; DROP TRIGGER case_entry_stays ON runtime_app_caseentry;
CREATE OR REPLACE FUNCTION hold_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'held' OR NEW.amount_minor <> OLD.amount_minor THEN
        RAISE EXCEPTION 'hold % has ended or would change its amount', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("runtime_app", "0004_money_truth")]
    operations = [migrations.RunSQL(GUARDS, GUARDS_BACK)]
