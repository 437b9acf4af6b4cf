"""Rules for reminders before an episode ends.

An episode stores the expiry for which each reminder was sent, so none is sent twice.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

DAY = timedelta(hours=24)
HOUR = timedelta(hours=1)

EXPIRY_EFFECTS = {
    "hold": "It stays engaged then and is OVERDUE: extend or release it before.",
    "ramp": "A ramp begins by itself then, unless a safety rule forbids its release: services are "
    "told to let 5, 25 and 100 % of its traffic flow. Extend it if it has to stay.",
    "release": "It is released by itself then, unless a safety rule forbids it: services are told "
    "to let its traffic flow. Extend it if it has to stay.",
}


@dataclass(frozen=True, slots=True)
class EpisodeEnd:
    """The end of an episode: its expiry, or the re-confirmation deadline of a permanent one.

    `day_reminder_for` is the end that the last day reminder was about, `hour_reminder_for` that of
    the last hour reminder.
    """

    ends_at: datetime
    permanent: bool
    day_reminder_for: datetime | None
    hour_reminder_for: datetime | None


def due_reminder(ending: EpisodeEnd, now: datetime) -> timedelta | None:
    """Return the reminder that is due and not yet sent: `DAY`, `HOUR` or None.

    If both are due, `HOUR` is returned; after the end, None. A permanent episode has no hour
    reminder.
    """
    left = ending.ends_at - now
    if left <= timedelta():
        return None
    if left <= HOUR and not ending.permanent:
        return HOUR if ending.hour_reminder_for != ending.ends_at else None
    if left <= DAY:
        return DAY if ending.day_reminder_for != ending.ends_at else None
    return None


def skipped_reminders(ends_at: datetime, now: datetime) -> dict[str, datetime | None]:
    """Return the reminder fields of an episode whose expiry was set to `ends_at` at `now`.

    A day or hour reminder that could only come right after `now` is skipped: it is marked as sent.
    """
    lasts = ends_at - now
    return {
        "day_reminder_for": ends_at if lasts <= DAY else None,
        "hour_reminder_for": ends_at if lasts <= HOUR else None,
    }
