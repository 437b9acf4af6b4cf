"""The minutes of dependencies: periodic samples of breaker states, and reads of many at once."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import connection

from breakers.counts import COUNTERS
from controlplane.core.freshness import INSTANCE_CADENCE
from controlplane.core.instances.exports import UNSTOPPED_BOOT
from controlplane.core.sql import fetch_binary

from .history import MinuteRow

MINUTES_KEPT = timedelta(days=3)
# Minutes are counted from the first one: thousands of timestamps take long to parse.
_MINUTES = f"""
    SELECT dependency_id, (extract(epoch FROM minute - %s::timestamptz) / 60)::int,
           worst, {", ".join(COUNTERS)}
    FROM breakers_minute WHERE dependency_id = ANY(%s) AND minute >= %s
    ORDER BY minute
"""  # noqa: S608

# Rows are locked in order of dependencies, like the data plane does when it adds counters, to avoid
# deadlocks. Rows that would not change are not written.
_SAMPLE = f"""
    INSERT INTO breakers_minute AS kept (dependency_id, minute, worst, open, half_open, instances)
    SELECT s.dependency_id, date_trunc('minute', %(now)s::timestamptz),
           max(CASE s.state WHEN 'open' THEN 3 WHEN 'half_open' THEN 2 ELSE 1 END),
           count(*) FILTER (WHERE s.state = 'open'),
           count(*) FILTER (WHERE s.state = 'half_open'), count(*)
    FROM breakers_breakerstate s
    JOIN {UNSTOPPED_BOOT}
    WHERE i.reported_at >= %(fresh)s
    GROUP BY s.dependency_id ORDER BY s.dependency_id
    ON CONFLICT (dependency_id, minute) DO UPDATE SET
        worst = greatest(kept.worst, excluded.worst),
        open = greatest(kept.open, excluded.open),
        half_open = greatest(kept.half_open, excluded.half_open),
        instances = greatest(kept.instances, excluded.instances)
    WHERE kept.worst < excluded.worst OR kept.open < excluded.open
       OR kept.half_open < excluded.half_open OR kept.instances < excluded.instances
"""  # noqa: S608


def sample_states(now: datetime) -> int:
    """Record current breaker states in the rows of this minute; return how many rows changed.

    Only breakers of reporting instances count.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLE, {"now": now, "fresh": now - INSTANCE_CADENCE})
        return int(cursor.rowcount)


def load_minutes(ids: Collection[int], first: datetime) -> Mapping[int, Sequence[MinuteRow]]:
    """Return the minutes since `first`, a whole minute, in order of time, by dependency."""
    found: dict[int, list[MinuteRow]] = defaultdict(list)
    times: dict[int, datetime] = {}
    for pk, place, *counts in fetch_binary(_MINUTES, [first, list(ids), first]):
        minute = times.get(place) or times.setdefault(place, first + place * timedelta(minutes=1))
        found[pk].append(MinuteRow(minute, *counts))
    return found
