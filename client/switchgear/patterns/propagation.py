"""Headers that carry the remaining time and the retry attempt of a call to another process.

Time is sent as a duration, not as a timestamp, since clocks differ.
"""

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from switchgear.patterns import retried_calls, time_limits

TIMEOUT_HEADER = "X-Request-Timeout-Ms"
ATTEMPT_HEADER = "X-Retry-Attempt"
LAST_ATTEMPT_HEADER = "X-Retry-Last-Attempt"
MAX_TIMEOUT_SECONDS = 3600.0
"""Longer limits are shortened to this."""
MAX_ATTEMPT = 1000

_UNITS: Mapping[str, float] = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}

_ATTEMPTS = (ATTEMPT_HEADER.lower(), LAST_ATTEMPT_HEADER.lower())

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


def outgoing(failure: BaseException | None = None) -> dict[str, str]:
    """Return the headers that carry the time limit and retry attempt of a request made here.

    `X-Request-Timeout-Ms` is included if the time is limited. If the request is part of a retry,
    the number of the attempt, from 0, is in `X-Retry-Attempt`, or on the last attempt in
    `X-Retry-Last-Attempt`. `failure` is the error that the request raises if it fails: only
    retries that would repeat the request after it are considered; if None, all.
    """
    headers: dict[str, str] = {}
    left = time_limits.remaining_seconds()
    if left is not None:
        headers[TIMEOUT_HEADER] = str(int(left * 1000))
    around = retried_calls.iter_outward(retried_calls.find_innermost())
    repeating = [each for each in around if each.repeats_on(failure)]
    if repeating:  # All of these leave the failure to the outermost one.
        outermost = repeating[-1]
        header = ATTEMPT_HEADER if outermost.has_more else LAST_ATTEMPT_HEADER
        headers[header] = str(outermost.number)
    return headers


class IncomingRequest:
    """The limits of an incoming request, as a context manager.

    Code in the block has no more time than the client waits, and does not retry failures that the
    client retries. Outer limits do not apply: the time of a request runs from the creation of this
    object. The object is for one request, which may enter it repeatedly, nested. `seconds` is the
    client's limit, None without one; `attempt` is the number of the client's attempt, None if the
    client does not retry; `is_last` is True if no attempt follows.
    """

    def __init__(
        self,
        seconds: float | None,
        attempt: int | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_last: bool = False,
    ) -> None:
        self.seconds = seconds
        self.attempt = attempt
        self.is_last = is_last
        self._clock = clock
        self._until = math.inf if seconds is None else clock() + seconds
        self._entered: list[tuple[time_limits.TimeLimit, retried_calls.RetriedCall]] = []

    @property
    def is_over(self) -> bool:
        """True if no time is left: the client no longer waits."""
        return self._clock() >= self._until

    def __enter__(self) -> "IncomingRequest":
        limit = time_limits.begin_detached(self, self.seconds or 0.0, self._until, self._clock)
        marker = retried_calls.RetriedCall(self.attempt)
        marker.is_last = self.is_last
        retried_calls.begin(marker)
        self._entered.append((limit, marker))
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        limit, marker = self._entered.pop()
        retried_calls.end(marker)
        time_limits.end(limit)


def incoming(
    headers: Headers, *, clock: Callable[[], float] = time.monotonic, trusts_attempt: bool = False
) -> IncomingRequest:
    """Return the limits of an incoming request by its headers; invalid headers are ignored.

    The time limit is the shortest of `X-Request-Timeout-Ms`, `grpc-timeout` and
    `x-envoy-expected-rq-timeout-ms`. `X-Retry-Attempt` and `X-Retry-Last-Attempt` switch retries
    off here, so they are accepted only with `trusts_attempt`, for a client known to retry.
    """
    items = headers.items() if isinstance(headers, Mapping) else headers
    seconds: list[float] = []
    attempt, is_last = None, False
    for name, value in items:
        lowered = name.lower()
        if lowered in ("x-request-timeout-ms", "x-envoy-expected-rq-timeout-ms"):
            if re.fullmatch("[0-9]{1,15}", value):
                seconds.append(int(value) / 1000)
        elif lowered == "grpc-timeout":
            if found := re.fullmatch("([0-9]{1,8})([HMSmun])", value):
                seconds.append(int(found[1]) * _UNITS[found[2]])
        elif lowered in _ATTEMPTS and trusts_attempt and re.fullmatch("[0-9]{1,9}", value):
            attempt = min(int(value), MAX_ATTEMPT)
            is_last = is_last or lowered == _ATTEMPTS[1]
    shortest = min([*seconds, MAX_TIMEOUT_SECONDS]) if seconds else None
    return IncomingRequest(shortest, attempt, clock, is_last=is_last)
