"""Deletion of SLOs removed long ago, and of histogram edges that nobody sends any more.

An SLO is kept whole while it has alerts, which have a retention rule of their own.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection, transaction

KEPT_FOR = timedelta(days=35)
BATCH_SIZE = 10
"""SLIs or SLOs in a transaction: each may have the minutes of a year."""
PURGEABLE = """
    removed_at < %(before)s AND NOT EXISTS (SELECT FROM slo_alert a WHERE a.slo_id = {slo}.id)
"""
_SLIS = f"""
    SELECT i.id FROM slo_sli i LEFT JOIN slo_slo o ON o.id = i.slo_id
    WHERE ({PURGEABLE.format(slo="o")}) OR (i.slo_id IS NULL
          AND coalesce(to_timestamp(i.last * 60.0), i.created_at) < %(before)s)
    ORDER BY i.id LIMIT %(most)s FOR UPDATE OF i SKIP LOCKED
"""  # noqa: S608
_SLOS = f"""
    SELECT o.id FROM slo_slo o WHERE {PURGEABLE.format(slo="o")}
    AND NOT EXISTS (SELECT FROM slo_sli WHERE slo_id = o.id)
    ORDER BY o.id LIMIT %(most)s FOR UPDATE SKIP LOCKED
"""  # noqa: S608
_DELETE_SLIS = (
    "DELETE FROM slo_sample WHERE series_id IN"
    " (SELECT id FROM slo_series WHERE sli_id = ANY(%(ids)s::bigint[]))",
    "DELETE FROM slo_series WHERE sli_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_minute WHERE sli_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_hour WHERE sli_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_delayed WHERE sli_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_sli WHERE id = ANY(%(ids)s::bigint[])",
)
_DELETE_SLOS = (
    "DELETE FROM slo_exclusion WHERE slo_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_standing WHERE slo_id = ANY(%(ids)s::bigint[])",
    "DELETE FROM slo_slo WHERE id = ANY(%(ids)s::bigint[])",
)


def purge_removed(now: datetime, *, most: int) -> int:
    """Delete them with all their counters, statuses and exclusions; return how many rows.

    Some at a time, until about `most` rows are deleted.
    """
    done = 0
    for found, statements in ((_SLIS, _DELETE_SLIS), (_SLOS, _DELETE_SLOS)):
        while done < most and (deleted := _purge_some(found, statements, now - KEPT_FOR)):
            done += deleted
    return done


@transaction.atomic
def _purge_some(found: str, statements: Sequence[str], before: datetime) -> int:
    done = 0
    with connection.cursor() as cursor:
        cursor.execute(found, {"before": before, "most": BATCH_SIZE})
        ids = [row[0] for row in cursor.fetchall()]
        for statement in statements if ids else ():
            cursor.execute(statement, {"ids": ids})
            done += int(cursor.rowcount)
    return done
