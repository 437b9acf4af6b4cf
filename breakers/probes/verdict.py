"""The state of a service by its probe results. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime

FAILURES_UNTIL_AWAY = 3
"""Failures in a row after which a service is away; one answer brings it back."""


@dataclass(frozen=True)
class ProbeState:
    """A service's state: away or not, failures in a row, and the time of the last change."""

    is_away: bool = False
    failures: int = 0
    since: datetime | None = None


def next_state(standing: ProbeState, answered: bool | None, now: datetime) -> ProbeState:
    """Return the state after another probe.

    `answered` None means that probing is not allowed: unknown.
    """
    if answered is None:
        return ProbeState()
    if answered:
        came_back = standing.is_away or standing.since is None
        return ProbeState(False, 0, now if came_back else standing.since)
    failures = standing.failures + 1
    if standing.is_away or failures < FAILURES_UNTIL_AWAY:
        return replace(standing, failures=failures)
    return ProbeState(True, failures, now)
