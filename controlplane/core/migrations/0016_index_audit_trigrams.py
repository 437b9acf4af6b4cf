"""Create the index of the search in the audit trail concurrently with writes.

An interrupted build leaves an invalid index, which is dropped and rebuilt. `fastupdate` is off: a
pending list saves little, and one engagement would have to merge it.
"""

from django.db import migrations

INDEX = r"""
CREATE INDEX CONCURRENTLY core_audit_search ON core_auditentry
USING gin (
    core_audit_trigrams(
        id >> 14, actor_name || E'\n' || action || E'\n' || target || E'\n' || reason
    )
) WITH (fastupdate = off)
"""
DROP = "DROP INDEX CONCURRENTLY IF EXISTS core_audit_search"
WAIT = "SET lock_timeout = '60s'"
STOP_WAITING = "RESET lock_timeout"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("core", "0015_audit_trigrams")]
    expands = "an index, built concurrently, of a function of the row alone"
    operations = [
        migrations.RunSQL([WAIT, DROP, INDEX, STOP_WAITING], [WAIT, DROP, STOP_WAITING]),
    ]
