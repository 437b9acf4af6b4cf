"""Make PostgreSQL refuse an audit row that does not follow the last one."""

from django.db import migrations

REQUIRE = """
CREATE FUNCTION core_audit_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last_id bigint;
    last_hash text;
BEGIN
    -- With its schema: a temporary table of this name would be found before it.
    EXECUTE format(
        'SELECT id, hash FROM %I.%I ORDER BY id DESC LIMIT 1', TG_TABLE_SCHEMA, TG_TABLE_NAME
    ) INTO last_id, last_hash;
    IF last_id IS NULL THEN
        last_id := 0;
        last_hash := repeat('0', 64);
    END IF;
    IF NEW.id IS DISTINCT FROM last_id + 1 OR NEW.previous_hash IS DISTINCT FROM last_hash THEN
        RAISE EXCEPTION 'audit row % does not follow row %', NEW.id, last_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER core_audit_follows
    BEFORE INSERT ON core_auditentry
    FOR EACH ROW EXECUTE FUNCTION core_audit_follow();
"""
ALLOW = """
DROP TRIGGER core_audit_follows ON core_auditentry;
DROP FUNCTION core_audit_follow();
"""


class Migration(migrations.Migration):
    dependencies = [("core", "0016_index_audit_trigrams")]
    expands = "it refuses only what no release writes: each takes the next id and the last hash"
    operations = [migrations.RunSQL(REQUIRE, ALLOW)]
