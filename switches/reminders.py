"""Rules for reminders before an episode ends.

An episode stores the expiry for which each reminder was sent, so none is sent twice.
"""

from datetime import datetime, timedelta

from switches.models import Episode

DAY = timedelta(hours=24)
HOUR = timedelta(hours=1)

EXPIRY_EFFECTS = {
    "hold": "At expiry it stays engaged and becomes OVERDUE. Extend or release it before then.",
    "ramp": (
        "At expiry a ramp starts, unless a safety rule forbids it: services allow 5, 25, then 100 %"
        " of its traffic. Extend it to keep it engaged."
    ),
    "release": (
        "At expiry it is released, unless a safety rule forbids it: services allow its traffic."
        " Extend it to keep it engaged."
    ),
}


def due_reminder(episode: Episode, now: datetime) -> timedelta | None:
    """Return the reminder that is due and not yet sent: `DAY`, `HOUR` or None.

    If both are due, `HOUR` is returned; after the end, None. A permanent episode has no hour
    reminder.
    """
    ends_at = episode.ends_at
    left = timedelta() if ends_at is None else ends_at - now
    if left <= timedelta():
        return None
    if left <= HOUR and not episode.permanent:
        return HOUR if episode.hour_reminder_for != ends_at else None
    if left <= DAY:
        return DAY if episode.day_reminder_for != ends_at else None
    return None


def skipped_reminders(ends_at: datetime, now: datetime) -> dict[str, datetime | None]:
    """Return an episode's reminder fields when its expiry was set to `ends_at` at `now`.

    A reminder that would be due at once is skipped: it is marked as sent.
    """
    lasts = ends_at - now
    return {
        "day_reminder_for": ends_at if lasts <= DAY else None,
        "hour_reminder_for": ends_at if lasts <= HOUR else None,
    }
