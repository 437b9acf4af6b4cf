"""PostgreSQL itself refuses to change or empty the audit table, whoever asks."""

from django.db import migrations

REFUSE = """
CREATE FUNCTION core_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only: % refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER core_audit_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON core_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION core_audit_refuse();
"""
ALLOW = """
DROP TRIGGER core_audit_append_only ON core_auditentry;
DROP FUNCTION core_audit_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("core", "0001_initial")]
    operations = [migrations.RunSQL(REFUSE, ALLOW)]
