"""Forgetting instances that are gone and acknowledgements that are old."""

from datetime import datetime, timedelta

from django.db import connection

from controlplane.core.canonical import timestamp

ACKNOWLEDGEMENTS_KEPT = timedelta(days=8)
INSTANCES_KEPT = timedelta(hours=24)

# What the data plane holds just now is left for the next turn, so that neither waits for the other.
# An array, not a plain subquery: the planner may run that once per row, each time with a new limit.
OLD_ACKNOWLEDGEMENTS = """
    DELETE FROM core_acknowledgement WHERE id = ANY(ARRAY(
        SELECT id FROM core_acknowledgement WHERE acknowledged_at < %(before)s
        LIMIT %(most)s FOR UPDATE SKIP LOCKED
    ))
"""
GONE_INSTANCES = """
    DELETE FROM core_instance WHERE id = ANY(ARRAY(
        SELECT id FROM core_instance
        WHERE coalesce(greatest(heard_at, reported_at), '-infinity') < %(before)s
          AND NOT EXISTS (
              SELECT FROM jsonb_each(checks) AS entry WHERE entry.value ->> 'seen' >= %(seen)s
          )
        LIMIT %(most)s FOR UPDATE SKIP LOCKED
    ))
"""


def forget_acknowledgements(now: datetime, *, most: int) -> int:
    """Delete at most `most` acknowledgements older than 8 days; returns how many."""
    before = now - ACKNOWLEDGEMENTS_KEPT
    with connection.cursor() as cursor:
        cursor.execute(OLD_ACKNOWLEDGEMENTS, {"before": before, "most": most})
        return int(cursor.rowcount)


def forget_instances(now: datetime, *, most: int) -> int:
    """Delete at most `most` instances that neither polled, reported nor asked for 24 h."""
    before = now - INSTANCES_KEPT
    with connection.cursor() as cursor:
        # Moments as entries hold them sort as text.
        cursor.execute(GONE_INSTANCES, {"before": before, "seen": timestamp(before), "most": most})
        return int(cursor.rowcount)
