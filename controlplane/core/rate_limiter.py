"""Rate limits by token buckets, each of which is one number (GCRA, ITU-T I.371). Pure."""

from collections import OrderedDict
from typing import NamedTuple

NEVER_USED = float("-inf")
"""The state of a bucket that was never used: full."""
ROUNDING_SECONDS = 1e-6


class RateLimit(NamedTuple):
    """The limit of a token bucket: the sustained rate, and the largest `burst` after a pause."""

    per_second: float
    burst: float

    def seconds_to_wait(self, full_at: float, now: float) -> float:
        """Return the seconds until a token is available; 0 if one is available at `now`.

        `full_at` is the time when the bucket will be full again.
        """
        seconds = full_at - now - (self.burst - 1) / self.per_second
        return seconds if seconds > ROUNDING_SECONDS else 0.0

    def acquire(self, full_at: float, now: float) -> float:
        """Take a token at `now`: return the new time when the bucket will be full again.

        `full_at` is that time before the token is taken.
        """
        return max(full_at, now) + 1 / self.per_second


class TokenBucket:
    """A token bucket, full at the start."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._full_at = NEVER_USED

    def acquire(self, now: float) -> bool:
        """Take a token if one is available; return True if it was."""
        if self._limit.seconds_to_wait(self._full_at, now):
            return False
        self._full_at = self._limit.acquire(self._full_at, now)
        return True


class TokenBuckets:
    """Token buckets by key; above `max_keys`, the least recently used one is dropped.

    A dropped bucket begins again full.
    """

    def __init__(self, limit: RateLimit, max_keys: int) -> None:
        self._limit = limit
        self._max_keys = max_keys
        self._full_at: OrderedDict[object, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def clear(self) -> None:
        self._full_at.clear()

    def seconds_to_wait(self, key: object, now: float) -> float:
        """Return the seconds until a token of `key` is available; 0 if one is available now."""
        return self._limit.seconds_to_wait(self._full_at.get(key, NEVER_USED), now)

    def acquire(self, key: object, now: float) -> float:
        """Take a token of `key` if one is available; return the seconds to wait, 0 if taken."""
        full_at = self._full_at.get(key, NEVER_USED)
        seconds = self._limit.seconds_to_wait(full_at, now)
        self._full_at[key] = full_at if seconds else self._limit.acquire(full_at, now)
        self._full_at.move_to_end(key)
        if len(self._full_at) > self._max_keys:
            self._full_at.popitem(last=False)
        return seconds
