"""Rate limit of a destination, whose state is the column `Pace.paced_until`. Pure."""

from datetime import datetime, timedelta

from controlplane.core.rate_limiter import RateLimit

DEFAULT_LIMIT = RateLimit(per_second=5, burst=20)
ROUNDING_SECONDS = 1.0
MAX_KEEP_AWAY = timedelta(hours=24)
"""Longest pause of a destination, whatever its `Retry-After`."""


def wait_seconds(limit: RateLimit, paced_until: datetime, now: datetime) -> float:
    """Return the seconds until the next message may be sent; 0 if it may be sent now."""
    return limit.seconds_to_wait(_seconds_ahead(limit, paced_until, now), 0.0)


def advance(limit: RateLimit, paced_until: datetime, now: datetime) -> datetime:
    """Return the new `paced_until` of a destination to which a message is sent at `now`."""
    return now + timedelta(seconds=limit.acquire(_seconds_ahead(limit, paced_until, now), 0.0))


def keep_away_until(until: datetime | None, now: datetime) -> datetime | None:
    """Return `until`, the end of a destination's pause, if it is plausible; None otherwise.

    A time beyond `MAX_KEEP_AWAY` was stored before the clock was set back.
    """
    return until if until is not None and until <= now + MAX_KEEP_AWAY else None


def _seconds_ahead(limit: RateLimit, paced_until: datetime, now: datetime) -> float:
    """Return the seconds by which `paced_until` is ahead of `now`.

    Return 0 if they exceed a full burst: such a time was stored before the clock was set back.
    """
    seconds = (paced_until - now).total_seconds()
    return seconds if seconds <= limit.burst / limit.per_second + ROUNDING_SECONDS else 0.0
