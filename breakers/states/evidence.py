"""The order of dependencies on the board and the map: what an on-call engineer needs first."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any

from controlplane.core.freshness import GONE_AFTER, INSTANCE_CADENCE
from controlplane.core.instances.exports import UNSTOPPED_BOOT
from controlplane.core.sql import fetch_all


class Evidence(IntEnum):
    """Known condition of a dependency, most urgent first.

    A person's decision comes before all, because it hides what the breaker would do and can itself
    be the outage. Then come failures by fresh reports, then what can't be judged, then good news.
    """

    FORCED = 0
    OPEN = 1
    HALF_OPEN = 2
    FAILING = 3
    """The breaker is closed and calls fail: :func:`breakers.states.recent_calls.find_failing`."""
    STALE = 4
    """Every instance's last report is older than 30 s."""
    HEALTHY = 5
    UNREPORTED = 6
    """No report within 5 minutes, or only by instances that stopped cleanly."""


PRESENT_STATES = f"""
    SELECT s.dependency_id, s.state, i.reported_at >= %(fresh)s AS fresh
    FROM breakers_breakerstate s
    JOIN {UNSTOPPED_BOOT}
    WHERE i.reported_at >= %(gone)s
"""  # noqa: S608
"""Query of the breakers of instances that reported within 5 minutes and did not stop cleanly.

`fresh` is within 30 s.
"""
# `state` is the worst state of the fresh instances, otherwise of the stale ones. If `ids` is not
# null, only these dependencies are judged.
JUDGED = f"""
    reports AS (
        SELECT dependency_id, bool_or(fresh) AS fresh,
               bool_or(fresh AND state = 'open') AS is_open,
               bool_or(fresh AND state = 'half_open') AS is_half_open,
               bool_or(state = 'open') AS was_open,
               bool_or(state = 'half_open') AS was_half_open
        FROM (
            {PRESENT_STATES}
              AND (%(ids)s::bigint[] IS NULL OR s.dependency_id = ANY(%(ids)s))
        ) present
        GROUP BY dependency_id
    ), stated AS (
        SELECT d.id, d.caller, d.callee, d.criticality, d.owner,
               reports.dependency_id IS NOT NULL AS present,
               coalesce(reports.fresh, false) AS reported,
               CASE WHEN is_open OR NOT fresh AND was_open THEN 'open'
                    WHEN is_half_open OR NOT fresh AND was_half_open THEN 'half_open'
                    WHEN reports.dependency_id IS NOT NULL THEN 'closed'
                    ELSE 'unknown' END AS state,
               failing.id IS NOT NULL AS calls_fail,
               o.id IS NOT NULL AS overridden
        FROM breakers_dependency d
        LEFT JOIN reports ON reports.dependency_id = d.id
        LEFT JOIN unnest(%(failing)s::bigint[]) AS failing (id) ON failing.id = d.id
        LEFT JOIN breakers_override o ON o.dependency_id = d.id AND o.ended_at IS NULL
        WHERE d.removed_at IS NULL AND (%(ids)s::bigint[] IS NULL OR d.id = ANY(%(ids)s))
    ), judged AS (
        SELECT stated.*, state = 'closed' AND calls_fail AS failing,
               CASE WHEN overridden THEN {Evidence.FORCED:d}
                    WHEN reported AND state = 'open' THEN {Evidence.OPEN:d}
                    WHEN reported AND state = 'half_open' THEN {Evidence.HALF_OPEN:d}
                    WHEN state = 'closed' AND calls_fail THEN {Evidence.FAILING:d}
                    WHEN reported THEN {Evidence.HEALTHY:d}
                    WHEN present THEN {Evidence.STALE:d}
                    ELSE {Evidence.UNREPORTED:d} END AS evidence
        FROM stated
    )
"""  # noqa: S608
"""CTEs that end with `judged`: registered dependencies with their state and evidence."""
WORST_FIRST = """
    evidence, array_position(ARRAY['open', 'half_open'], state),
    array_position(ARRAY['critical', 'high', 'medium', 'low'], criticality::text), caller, callee
"""
"""ORDER BY list for rows of `judged`."""
_RANKS = f"""
    WITH {JUDGED}
    SELECT id, row_number() OVER (ORDER BY {WORST_FIRST}) FROM judged
"""  # noqa: S608
_STATES = f"WITH {JUDGED} SELECT state, count(*) FROM judged GROUP BY state"  # noqa: S608


def evidence_values(
    failing: Collection[int], now: datetime, ids: Collection[int] | None = None
) -> dict[str, Any]:
    """Return the parameters of `JUDGED`; `failing` are the ids of those whose calls fail."""
    return {
        "fresh": now - INSTANCE_CADENCE,
        "gone": now - GONE_AFTER,
        "failing": list(failing),
        "ids": None if ids is None else list(ids),
    }


def count_states(now: datetime) -> Counter[str]:
    """Return the numbers of dependencies by state. Makes one query."""
    return Counter(dict(fetch_all(_STATES, evidence_values((), now))))


def rank_dependencies(
    ids: Collection[int], failing: Collection[int], now: datetime
) -> Mapping[int, int]:
    """Return the rank of each dependency by id; 1 is the most urgent. Makes one query."""
    return dict(fetch_all(_RANKS, evidence_values(failing, now, ids)))
