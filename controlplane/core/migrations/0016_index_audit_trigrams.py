"""The index of the search in the audit trail, built beside everything that is written meanwhile.

One that was broken off is invalid, and built anew. `fastupdate` is off: gathering entries would
save little, and some engagement would have to sort them all in.
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
