"""Dependencies with a breaker that is open or half-open without an override.

Degradation, alarms, outages and attention items all use these counts, so that they agree. Forced
breakers and silent instances don't show the state of the callee, so both are counted separately.
Instances without a report for 5 minutes, and those that stopped cleanly, are ignored.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from breakers import names
from breakers.models import Service
from controlplane.core.freshness import GONE_AFTER, INSTANCE_CADENCE
from controlplane.core.instances.exports import UNSTOPPED_BOOT, find_stopped_services
from controlplane.core.sql import fetch_all

# The inner query reads the few breakers that are not closed from a partial index.
_LOOK = f"""
    SELECT d.id, d.caller, d.callee, d.criticality, coalesce(callee.kind, ''),
           count(*) FILTER (WHERE fresh AND normal),
           count(*) FILTER (WHERE fresh AND normal AND state = 'open'),
           count(*) FILTER (WHERE fresh AND normal AND state = 'half_open'),
           count(*) FILTER (WHERE fresh AND NOT normal),
           count(*) FILTER (WHERE NOT fresh AND normal),
           count(*) FILTER (WHERE NOT fresh AND normal AND state = 'open'),
           min(since) FILTER (WHERE fresh AND normal AND state = 'open')
    FROM (
        SELECT s.dependency_id, s.state, s.mode = 'normal' AS normal,
               coalesce(s.since, s.changed_at) AS since, i.reported_at >= %(fresh)s AS fresh
        FROM breakers_breakerstate s
        JOIN {UNSTOPPED_BOOT}
        WHERE i.reported_at >= %(gone)s AND s.dependency_id = ANY(%(also)s::bigint[] || ARRAY(
            SELECT DISTINCT dependency_id FROM breakers_breakerstate
            WHERE state <> 'closed' AND mode = 'normal'
        ))
    ) reports
    JOIN breakers_dependency d ON d.id = reports.dependency_id
    LEFT JOIN breakers_service callee ON callee.slug = d.callee
    WHERE d.removed_at IS NULL
    GROUP BY d.id, callee.kind ORDER BY d.caller, d.callee
"""  # noqa: S608
WEIGHTY_CRITICALITIES = ("critical", "high")


@dataclass(frozen=True)
class UnhealthyDependency:
    """A dependency, with its caller's instances counted by breaker state.

    `instances`, `open` and `half_open` count reporting instances that have no forced
    mode; `blinded` counts those with a forced mode. `silent` and `silent_open` count instances
    without a report for 30 s. `since` is the time of the earliest opening; `kind` is the kind of
    the callee, empty if it is not registered.
    """

    id: int
    caller: str
    callee: str
    criticality: str
    kind: str
    instances: int = 0
    open: int = 0
    half_open: int = 0
    blinded: int = 0
    silent: int = 0
    silent_open: int = 0
    since: datetime | None = None

    @property
    def name(self) -> str:
        return names.dependency_name(self.caller, self.callee)

    @property
    def fleet(self) -> int:
        """Number of reporting instances, including those with a forced mode."""
        return self.instances + self.blinded

    @property
    def is_weighty(self) -> bool:
        """True if its criticality is critical or high, or its callee is of the kind `service`."""
        return self.criticality in WEIGHTY_CRITICALITIES or self.kind == Service.Kind.SERVICE

    @property
    def is_unheard(self) -> bool:
        """True if breakers were open in the last reports and no instance has reported since."""
        return self.instances == 0 and self.silent_open > 0

    @property
    def share(self) -> float:
        """Ratio (0 to 1) of instances with an open or half-open breaker to all instances."""
        if self.is_unheard:
            return self.silent_open / (self.silent + self.blinded)
        return (self.open + self.half_open) / self.fleet if self.fleet else 0.0


def find_unhealthy(now: datetime, also: Collection[int] = ()) -> Mapping[int, UnhealthyDependency]:
    """Return a mapping of id to unhealthy dependency, in order of name. Makes one query.

    Reported dependencies with an id in `also` are included even if they are healthy.
    """
    values: dict[str, Any] = {
        "fresh": now - INSTANCE_CADENCE,
        "gone": now - GONE_AFTER,
        "also": [*also],
    }
    return {row[0]: UnhealthyDependency(*row) for row in fetch_all(_LOOK, values)}


def find_stopped(wanted: Collection[str], before: datetime) -> set[str]:
    """Return those of the dependencies, given by name, whose caller stopped before `before`.

    All instances of the caller must have stopped cleanly.
    """
    callers = {name: pair[0] for name in wanted if (pair := names.split_name(name))}
    stopped = find_stopped_services({*callers.values()}, before)
    return {name for name, caller in callers.items() if caller in stopped}
