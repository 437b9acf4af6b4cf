"""One row whose revision grows with every change that decides who may sign in with what."""

from django.db import migrations

WATCH = """
INSERT INTO core_credentials (id, revision) VALUES (1, 1);
CREATE FUNCTION core_credentials_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE core_credentials SET revision = revision + 1 WHERE id = 1;
    RETURN NULL;
END $$;
CREATE TRIGGER core_token_changed
    AFTER INSERT OR DELETE OR TRUNCATE
        OR UPDATE OF owner_id, prefix, digest, scopes, expires_at, revoked_at ON core_token
    FOR EACH STATEMENT EXECUTE FUNCTION core_credentials_changed();
CREATE TRIGGER core_user_changed
    AFTER DELETE OR UPDATE OF is_active, role ON core_user
    FOR EACH STATEMENT EXECUTE FUNCTION core_credentials_changed();
"""
FORGET = """
DROP TRIGGER core_user_changed ON core_user;
DROP TRIGGER core_token_changed ON core_token;
DROP FUNCTION core_credentials_changed();
DELETE FROM core_credentials;
"""


class Migration(migrations.Migration):
    dependencies = [("core", "0002_audit_is_append_only")]
    operations = [migrations.RunSQL(WATCH, FORGET)]
