"""The rate limiter of a destination, without its storage. Pure.

The generic cell rate algorithm (ITU-T I.371): the only state is the theoretical arrival time of the
next message. A burst is allowed as long as that time is not too far ahead.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Limit:
    """A rate limit: one message every `seconds` on average, and a burst of up to `burst`."""

    seconds: float
    burst: int


DEFAULT_LIMIT = Limit(0.2, 20)
ROUNDING_SECONDS = 1.0
MAX_KEEP_AWAY = timedelta(hours=24)
"""Longest time without sends to a destination, whatever its `Retry-After`."""


def wait_seconds(limit: Limit, paced_until: datetime, now: datetime) -> float:
    """Return the seconds until the next message may be sent; 0 if it may be sent now."""
    ahead = (_bounded(limit, paced_until, now) - now).total_seconds()
    return max(0.0, ahead - limit.seconds * (limit.burst - 1))


def advanced(limit: Limit, paced_until: datetime, now: datetime) -> datetime:
    """Return `paced_until` after a message is sent at `now`."""
    return max(_bounded(limit, paced_until, now), now) + timedelta(seconds=limit.seconds)


def keep_away_until(until: datetime | None, now: datetime) -> datetime | None:
    """Return `until`, or None if it is further ahead than `MAX_KEEP_AWAY`.

    Such a value was written before the clock was set back.
    """
    return until if until is not None and until <= now + MAX_KEEP_AWAY else None


def _bounded(limit: Limit, paced_until: datetime, now: datetime) -> datetime:
    """Return `paced_until`, or `now` if it is further ahead than a full burst allows.

    Such a value was written before the clock was set back.
    """
    latest = now + timedelta(seconds=limit.seconds * limit.burst + ROUNDING_SECONDS)
    return paced_until if paced_until <= latest else now
