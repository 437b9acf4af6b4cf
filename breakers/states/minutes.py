"""The board's memory: how breakers stood in each minute, and forgetting what is old."""

from datetime import datetime, timedelta

from django.db import connection

from controlplane.core import retention
from controlplane.core.instances.queries import HEARD_WITHIN

MINUTES_KEPT = timedelta(days=3)

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
RULES = (
    retention.rule(
        retention.Rule(
            name="breaker-transitions",
            model="breakers.Transition",
            kept=timedelta(days=35),
            where="received_at < %(before)s",
            since="received_at",
            order="received_at",
            bounds=(8, 400),
            tick="breakers.purge",
            why="The history of breakers, for the page of a dependency and the weekly report.",
        )
    ),
    retention.rule(
        retention.Rule(
            name="breaker-minutes",
            model="breakers.Minute",
            kept=MINUTES_KEPT,
            where="minute < %(before)s",
            since="minute",
            order="minute",
            tick="breakers.purge",
            why="How breakers stood by the minute; threshold rules look back as far at most.",
        )
    ),
    retention.rule(
        retention.Rule(
            name="breaker-alarms",
            model="breakers.Alarm",
            kept=timedelta(days=35),
            where="closed_at < %(before)s",
            since="since",
            bounds=(8, 400),
            tick="breakers.purge",
            why="Outages of a provider that are over.",
            but="What is open.",
        )
    ),
    # Of instances that are forgotten, or of a boot before the present one.
    retention.rule(
        retention.Rule(
            name="breaker-states",
            model="breakers.BreakerState",
            kept=timedelta(days=1),
            where="changed_at < %(before)s AND NOT EXISTS (SELECT FROM core_instance i"
            " WHERE i.id = it.instance AND i.boot = it.boot)",
            since="changed_at",
            tick="breakers.purge",
            why="What instances said last of their breakers.",
            but="Those of instances that run.",
        )
    ),
)


def sample_states(now: datetime) -> int:
    """Note how the breakers of instances that are fresh stand in this minute: the worst, and the
    most at once; returns for how many dependencies that was news. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLE, {"now": now, "fresh": now - HEARD_WITHIN})
        return int(cursor.rowcount)


def purge(now: datetime, *, at_once: int, most: int) -> int:
    """Delete up to `most` old rows of each kind, `at_once` in one statement; returns how many."""
    return retention.purge(RULES, now, at_once=at_once, most=most)
