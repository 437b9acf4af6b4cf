"""Create the function that indexes the search in the audit trail.

It needs no extension: `pg_trgm` is not available everywhere. It returns all trigrams of bytes of a
text in upper case, in UTF-8, each prefixed with the segment of its row: a search goes through the
trail segment by segment and reads little of the index at a time. Bytes work for every alphabet;
`upper()` matches the exact comparison by `ILIKE` that follows.
"""

from django.db import migrations

CREATE = r"""
CREATE FUNCTION core_audit_trigrams(segment bigint, words text) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
    SELECT ARRAY(
        SELECT (segment << 24)
               | (get_byte(bytes, n) << 16)
               | (get_byte(bytes, n + 1) << 8)
               | get_byte(bytes, n + 2)
        FROM convert_to(upper(words), 'UTF8') AS bytes, generate_series(0, length(bytes) - 3) AS n
    )
$$
"""
DROP = "DROP FUNCTION core_audit_trigrams(bigint, text)"


class Migration(migrations.Migration):
    dependencies = [("core", "0014_audit_rounds")]
    expands = "a function that nothing of the release before calls"
    operations = [migrations.RunSQL([CREATE], [DROP])]
