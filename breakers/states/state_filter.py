"""A filter of dependencies by state: the worst of their fresh breakers, else of the stale ones."""

from datetime import datetime

from django.db.models import QuerySet

from breakers.models import Dependency
from controlplane.core.instances.queries import GONE_AFTER, HEARD_WITHIN

from .dependency_status import UNKNOWN

# Rank 3 is open, 2 half-open, 1 closed; what is fresh counts before what is stale.
_JUDGED = """
    SELECT dependency_id FROM (
        SELECT s.dependency_id,
               CASE s.state WHEN 'open' THEN 3 WHEN 'half_open' THEN 2 ELSE 1 END AS rank,
               i.reported_at >= %s AS fresh
        FROM breakers_breakerstate s
        JOIN core_instance i ON i.id = s.instance AND i.boot = s.boot
        WHERE i.reported_at >= %s
    ) said
    GROUP BY dependency_id
"""
_WORST = " HAVING coalesce(max(rank) FILTER (WHERE fresh), max(rank)) = %s"
RANKS = {"open": 3, "half_open": 2, "closed": 1}


def filter_by_state(rows: QuerySet[Dependency], state: str, now: datetime) -> QuerySet[Dependency]:
    """Return those of `rows` in this state; `unknown` are those without reports."""
    heard = [now - HEARD_WITHIN, now - GONE_AFTER]
    if state == UNKNOWN:
        return rows.extra(where=[f"id NOT IN ({_JUDGED})"], params=heard)  # noqa: S610
    wanted = f"id IN ({_JUDGED}{_WORST})"
    return rows.extra(where=[wanted], params=[*heard, RANKS[state]])  # noqa: S610
