"""Minutes, numbered since 1970, and windows of so many of them.

Minute `m` is the span after `(m - 1) × 60` seconds up to `m × 60`: a sample that was taken exactly
at its end belongs to it.
"""

from datetime import UTC, datetime, timedelta

from controlplane.core import durations

MINUTE_SECONDS = 60
MINUTES_A_DAY = 24 * 60
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def minute_of(at: datetime) -> int:
    """The minute that a moment (aware) lies in."""
    return -((_EPOCH - at) // _MINUTE)


def last_ended(at: datetime) -> int:
    """The last minute that is over at this moment."""
    return (at - _EPOCH) // _MINUTE


def end_of(minute: int) -> datetime:
    """The moment at which a minute ends, in UTC."""
    return _EPOCH + minute * _MINUTE


def window_minutes(window: str) -> int:
    """How many minutes a window (`5m`, `1h`, `3d`) is long.

    Raises :class:`ValueError`, with a sentence, for one that is not of whole minutes.
    """
    duration = durations.parse(window)
    if duration % _MINUTE:
        raise ValueError("A window must be of whole minutes, such as 5m, 1h or 3d.")
    return duration // _MINUTE
