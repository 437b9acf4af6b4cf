"""From results to whether a service is there. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime

FAILURES_UNTIL_AWAY = 3
"""So many in a row, and it is away; one answer, and it is back."""


@dataclass(frozen=True)
class ProbeState:
    """Whether a service is away, how often in a row it did not answer, and since when it is so."""

    is_away: bool = False
    failures: int = 0
    since: datetime | None = None


def next_state(standing: ProbeState, answered: bool | None, now: datetime) -> ProbeState:
    """How it stands after it was asked once more; None: it may not be asked, so nobody knows."""
    if answered is None:
        return ProbeState()
    if answered:
        came_back = standing.is_away or standing.since is None
        return ProbeState(False, 0, now if came_back else standing.since)
    failures = standing.failures + 1
    if standing.is_away or failures < FAILURES_UNTIL_AWAY:
        return replace(standing, failures=failures)
    return ProbeState(True, failures, now)
