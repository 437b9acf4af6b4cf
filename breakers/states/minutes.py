"""The board's memory: how breakers stood in each minute, and forgetting what is old."""

from datetime import datetime, timedelta

from django.db import connection

from controlplane.core.forgetting import forget
from controlplane.core.instances.queries import HEARD_WITHIN

TRANSITIONS_KEPT = timedelta(days=35)
MINUTES_KEPT = timedelta(days=3)
ALARMS_KEPT = timedelta(days=35)
STATES_KEPT = timedelta(days=1)

# In order of dependencies, as whoever adds counters does: two writers in different orders would
# wait for each other for ever. What is known already is not written again.
_SAMPLE = """
    INSERT INTO breakers_minute AS kept (dependency_id, minute, worst, open, half_open, instances)
    SELECT s.dependency_id, date_trunc('minute', %(now)s::timestamptz),
           max(CASE s.state WHEN 'open' THEN 3 WHEN 'half_open' THEN 2 ELSE 1 END),
           count(*) FILTER (WHERE s.state = 'open'),
           count(*) FILTER (WHERE s.state = 'half_open'), count(*)
    FROM breakers_breakerstate s
    JOIN core_instance i ON i.id = s.instance AND i.boot = s.boot
    WHERE i.reported_at >= %(fresh)s
    GROUP BY s.dependency_id ORDER BY s.dependency_id
    ON CONFLICT (dependency_id, minute) DO UPDATE SET
        worst = greatest(kept.worst, excluded.worst),
        open = greatest(kept.open, excluded.open),
        half_open = greatest(kept.half_open, excluded.half_open),
        instances = greatest(kept.instances, excluded.instances)
    WHERE kept.worst < excluded.worst OR kept.open < excluded.open
       OR kept.half_open < excluded.half_open OR kept.instances < excluded.instances
"""
# Arrays, not plain subqueries: the planner may run those once per row, each time with a new limit.
_FORGET = (
    (
        "DELETE FROM breakers_transition WHERE id = ANY(ARRAY("
        " SELECT id FROM breakers_transition WHERE received_at < %(before)s"
        " ORDER BY received_at LIMIT %(most)s FOR UPDATE SKIP LOCKED))",
        TRANSITIONS_KEPT,
    ),
    (
        "DELETE FROM breakers_minute WHERE id = ANY(ARRAY("
        " SELECT id FROM breakers_minute WHERE minute < %(before)s"
        " ORDER BY minute LIMIT %(most)s FOR UPDATE SKIP LOCKED))",
        MINUTES_KEPT,
    ),
    (
        "DELETE FROM breakers_alarm WHERE id = ANY(ARRAY("
        " SELECT id FROM breakers_alarm WHERE closed_at < %(before)s"
        " LIMIT %(most)s FOR UPDATE SKIP LOCKED))",
        ALARMS_KEPT,
    ),
    # Of instances that are forgotten, or of a boot before the present one.
    (
        "DELETE FROM breakers_breakerstate WHERE id = ANY(ARRAY("
        " SELECT s.id FROM breakers_breakerstate s"
        " LEFT JOIN core_instance i ON i.id = s.instance AND i.boot = s.boot"
        " WHERE i.id IS NULL AND s.changed_at < %(before)s"
        " LIMIT %(most)s FOR UPDATE OF s SKIP LOCKED))",
        STATES_KEPT,
    ),
)


def sample(now: datetime) -> int:
    """Note how the breakers of instances that are fresh stand in this minute: the worst, and the
    most at once; returns for how many dependencies that was news. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLE, {"now": now, "fresh": now - HEARD_WITHIN})
        return int(cursor.rowcount)


def purge(now: datetime, *, at_once: int, most: int) -> int:
    """Delete up to `most` old rows of each kind, `at_once` in one statement; returns how many."""
    return forget(_FORGET, now, at_once=at_once, most=most)
