"""Rate limits for reports, per instance and per token. Memory only, bounded.

Each process counts separately. An instance above its limit does not use up its token's share, so
other instances with the same token are not affected.
"""

import math
from collections.abc import Callable
from typing import Any

from controlplane.core.errors import TooManyRequests
from controlplane.core.rate_limiter import RateLimit, TokenBuckets

MAX_INSTANCES = 20_000
MAX_TOKENS = 1000
INSTANCE = RateLimit(5, 20)
TOKEN = RateLimit(500, 2000)


class ReportRateLimiter:
    """The rate limits on reports to one process; `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._instances = TokenBuckets(INSTANCE, MAX_INSTANCES)
        self._tokens = TokenBuckets(TOKEN, MAX_TOKENS)

    def check(self, token_id: int) -> None:
        """Raise :class:`TooManyRequests` if the token is already above its limit; count nothing."""
        _refuse(self._tokens.seconds_to_wait(token_id, self._clock()), "This token", TOKEN)

    def admit(self, token_id: int, document: dict[str, Any]) -> None:
        """Count a report before it is parsed; raise :class:`TooManyRequests` above the limit.

        `document` is the report's JSON, {} if the body is not a JSON object.
        """
        service, instance = document.get("service"), document.get("instance")
        is_named = isinstance(service, str) and isinstance(instance, str)
        # Hashed, so that long names take no memory; reports without names share one key per token.
        key = hash((token_id, service, instance) if is_named else (token_id, None))
        now = self._clock()
        _refuse(self._instances.acquire(key, now), "This instance", INSTANCE)
        self._tokens.acquire(token_id, now)


def _refuse(seconds: float, sender: str, limit: RateLimit) -> None:
    if seconds > 0:
        raise TooManyRequests(
            f"{sender} reports too often. The limit is {limit.per_second:g} reports per second,"
            f" with bursts of {limit.burst:g}.",
            retry_after=math.ceil(seconds),
        )
