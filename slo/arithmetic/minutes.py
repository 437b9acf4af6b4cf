"""Minutes, numbered since 1970, and windows as a number of minutes.

Minute `m` lasts from `(m - 1) × 60` seconds, exclusive, to `m × 60` seconds, inclusive.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from controlplane.core import durations

MINUTE_SECONDS = 60
MINUTES_A_DAY = 24 * 60
EVALUATION_DELAY = timedelta(seconds=20)
"""A minute is evaluated this long after its end, so that its reports and samples have arrived."""
MINUTE = timedelta(minutes=1)
EVALUATION_CADENCE = 2 * MINUTE
"""Greatest age of a status while evaluation keeps up: a minute, the delay, and ticks in between."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def minute_of(at: datetime) -> int:
    return -((_EPOCH - at) // MINUTE)


def last_ended(at: datetime) -> int:
    """Return the last minute that has ended at the time `at`."""
    return (at - _EPOCH) // MINUTE


def due_minute(now: datetime) -> int:
    """Return the latest minute due for evaluation: `EVALUATION_DELAY` has passed since its end."""
    return last_ended(now - EVALUATION_DELAY)


def end_of(minute: int) -> datetime:
    """Return the time at which a minute ends, in UTC."""
    return _EPOCH + minute * MINUTE


@lru_cache(maxsize=4096)
def window_minutes(window: str) -> int:
    """Return a window (`5m`, `3d`) in minutes. Raise :class:`ValueError` if they are not whole."""
    duration = durations.parse(window)
    if duration % MINUTE:
        raise ValueError("A window must be of whole minutes, such as 5m, 1h or 3d.")
    return duration // MINUTE
