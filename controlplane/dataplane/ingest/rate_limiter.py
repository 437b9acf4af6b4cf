"""Rate limits for reports, per instance and per token, by token buckets. Memory only, bounded.

Each process counts separately. An instance above its limit does not use up its token's share, so
other instances with the same token are not affected.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from controlplane.core.errors import TooManyRequests

MAX_INSTANCES = 20_000
MAX_TOKENS = 1000


class RateLimit(NamedTuple):
    """The sustained rate `per_second`, and the largest `burst`."""

    per_second: float
    burst: float


INSTANCE = RateLimit(5, 20)
TOKEN = RateLimit(500, 2000)


class TokenBuckets:
    """Token buckets for at most `most` names; the least recently used one is dropped as full."""

    def __init__(self, limit: RateLimit, most: int, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._most = most
        self._clock = clock
        self._levels: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def lacks(self, name: object) -> float:
        """Return the seconds until one may be taken; 0 if now."""
        return max(0.0, 1 - self._level(name)) / self._limit.per_second

    def take_token(self, name: object) -> None:
        """Take one; the caller has checked that there is one."""
        self._levels[name] = self._level(name) - 1, self._clock()
        self._levels.move_to_end(name)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)

    def _level(self, name: object) -> float:
        found = self._levels.get(name)
        if found is None:
            return self._limit.burst
        level, at = found
        return min(self._limit.burst, level + (self._clock() - at) * self._limit.per_second)


class ReportRateLimiter:
    """The rate limits on reports to one process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._instances = TokenBuckets(INSTANCE, MAX_INSTANCES, clock)
        self._tokens = TokenBuckets(TOKEN, MAX_TOKENS, clock)

    def check(self, token_id: int) -> None:
        """Raise :class:`TooManyRequests` if the token is above its limit.

        Called before its report is parsed.
        """
        _refuse(self._tokens.lacks(token_id), "This token", TOKEN)

    def admit(self, token_id: int, document: dict[str, Any]) -> None:
        """Count a report about to be parsed; raise :class:`TooManyRequests` above the limit.

        `document` is {} if the body is not an object.
        """
        service, instance = document.get("service"), document.get("instance")
        is_named = isinstance(service, str) and isinstance(instance, str)
        # Hashed, so long names take no memory; unnamed reports share one instance per token.
        name = hash((token_id, service, instance) if is_named else (token_id, None))
        _refuse(self._instances.lacks(name), "This instance", INSTANCE)
        self._instances.take_token(name)
        self._tokens.take_token(token_id)


def _refuse(seconds: float, who: str, limit: RateLimit) -> None:
    if seconds > 0:
        said = f"{who} reports too often: {limit.per_second:g} a second, {limit.burst:g} at once."
        raise TooManyRequests(said, retry_after=math.ceil(seconds))
