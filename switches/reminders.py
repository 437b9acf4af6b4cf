"""Which reminder an episode is owed, and what an expiry brings by itself. Pure.

A reminder is owed once for each expiry: an episode remembers the expiry that it was reminded of, so
a new one is reminded of anew. All moments are absolute; no zone or clock change moves them.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core import durations
from switches.scopes import overdue_severity

DAY = timedelta(hours=24)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)

AT_EXPIRY = {
    "hold": "It stays engaged then and is OVERDUE: extend or release it before.",
    "ramp": "A ramp begins by itself then, unless a safety rule forbids its release: services are "
    "told to let 5, 25 and 100 % of its traffic flow. Extend it if it has to stay.",
    "release": "It is released by itself then, unless a safety rule forbids it: services are told "
    "to let its traffic flow. Extend it if it has to stay.",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """When an episode's time is up, or when a permanent one has to be re-confirmed by (`ends_at`),
    and the ends that were reminded of a day and an hour before."""

    ends_at: datetime
    permanent: bool
    day_reminder_for: datetime | None
    hour_reminder_for: datetime | None


def owed(ending: Ending, now: datetime) -> timedelta | None:
    """`DAY`, `HOUR` or None: the nearest reminder that is due and was not given yet.

    Whoever looks late gives the nearer one alone, and none once the time is up. A week's
    re-confirmation is reminded of a day before only.
    """
    left = ending.ends_at - now
    if left <= timedelta():
        return None
    if left <= HOUR and not ending.permanent:
        return HOUR if ending.hour_reminder_for != ending.ends_at else None
    if left <= DAY:
        return DAY if ending.day_reminder_for != ending.ends_at else None
    return None


def spared(ends_at: datetime, now: datetime) -> dict[str, datetime | None]:
    """What an episode remembers of an expiry that is set at `now`: reminders that would come at
    once, because the whole time is no longer than their notice, count as given."""
    lasts = ends_at - now
    return {
        "day_reminder_for": ends_at if lasts <= DAY else None,
        "hour_reminder_for": ends_at if lasts <= HOUR else None,
    }


def left(ends_at: datetime, now: datetime) -> str:
    """How long until then, in words that stay true while a message travels: `24 h`, `58 min`."""
    minutes = max(timedelta(minutes=1), (ends_at - now) // MINUTE * MINUTE)
    return durations.readable(minutes)


def reminder_severity(scope: str, notice: timedelta) -> str:
    """A day before there is time; an hour before, somebody has to decide now."""
    return overdue_severity(scope) if notice == HOUR else "warning"
