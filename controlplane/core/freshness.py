"""Freshness of figures: one decision on whether a figure may be shown as current. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

CURRENT, STALE, NEVER = "current", "stale", "never"
INSTANCE_CADENCE = timedelta(seconds=30)
"""Greatest age of an instance's last contact at which its figures are current.

SQL that counts the instances of the moment has the same limit, inclusive, as `fresh` or `there`.
"""
GONE_AFTER = timedelta(minutes=5)
"""Silence after which an instance counts as gone, and its last figures are no longer shown."""


@dataclass(frozen=True)
class Freshness:
    """The `state` of a figure, and the time `at` which it was true; None if it never was."""

    state: str
    at: datetime | None

    @property
    def is_current(self) -> bool:
        return self.state == CURRENT

    @property
    def is_stale(self) -> bool:
        return self.state == STALE


def assess_freshness(at: datetime | None, cadence: timedelta, now: datetime) -> Freshness:
    """Return the freshness of a figure that was true at `at`.

    `cadence` is the greatest age that the source's own interval explains. A figure from further
    ahead than that is stale too: a clock was set back, so its age is unknown.
    """
    if at is None:
        return Freshness(NEVER, None)
    return Freshness(CURRENT if abs(now - at) <= cadence else STALE, at)
