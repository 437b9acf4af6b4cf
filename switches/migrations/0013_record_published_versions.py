"""Let PostgreSQL record each published version, whichever release of Switchgear publishes it."""

from django.db import migrations

RECORD = """
CREATE FUNCTION switches_timeline() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer;
EXCEPTION WHEN OTHERS THEN
    -- A managed service may hide it, or the server is a standby. A change must not fail for it.
    RETURN NULL;
END $$;
CREATE FUNCTION switches_record_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO switches_publishedversion (epoch, version, published_at, timeline)
    VALUES (NEW.epoch, NEW.version, NEW.published_at, switches_timeline());
    RETURN NULL;
END $$;
CREATE TRIGGER switches_version_published
    AFTER UPDATE OF epoch, version ON switches_publication
    FOR EACH ROW WHEN (OLD.epoch <> NEW.epoch OR OLD.version <> NEW.version)
    EXECUTE FUNCTION switches_record_version();
INSERT INTO switches_publishedversion (epoch, version, published_at, timeline)
SELECT epoch, version, published_at, switches_timeline() FROM switches_publication;
"""
FORGET = """
DROP TRIGGER switches_version_published ON switches_publication;
DROP FUNCTION switches_record_version();
DROP FUNCTION switches_timeline();
"""


class Migration(migrations.Migration):
    dependencies = [("switches", "0012_lost_versions")]
    expands = "it only adds a row to a table that the previous release doesn't know"
    operations = [migrations.RunSQL(RECORD, FORGET)]
