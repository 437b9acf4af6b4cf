"""What goes along with a call to another process: how much time is left, and that somebody already
tries again.

Time travels as what remains, never as a moment: clocks differ.
"""

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, TracebackType

from switchgear.patterns import attempts, limits

TIMEOUT_HEADER = "X-Request-Timeout-Ms"
ATTEMPT_HEADER = "X-Retry-Attempt"
MOST_SECONDS = 3600.0
"""No more than this is believed."""
MOST_ATTEMPT = 1000

_UNITS: Mapping[str, float] = MappingProxyType(
    {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
)

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


def outgoing() -> dict[str, str]:
    """Headers for a call from here: `X-Request-Timeout-Ms` if something limits its time, and
    `X-Retry-Attempt` if something tries again, from the first attempt on, which is 0."""
    headers: dict[str, str] = {}
    left = limits.left()
    if left is not None:
        headers[TIMEOUT_HEADER] = str(int(left * 1000))
    active = attempts.active()
    if active is not None:
        headers[ATTEMPT_HEADER] = str(active.number)
    return headers


class Incoming:
    """Within `with`, what is done belongs to the call that brought the headers: it has no more time
    than the caller waits, and is not tried again if the caller does that.

    What was around it is left aside: a request has its own time, which counts from when this was
    made. It is of one request, which may enter it several times, one within the other. `seconds` is
    what the caller gave, None if it said nothing; `attempt` which attempt of the caller's it is,
    None if it does not try again.
    """

    def __init__(
        self,
        seconds: float | None,
        attempt: int | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self.attempt = attempt
        self._clock = clock
        self._until = math.inf if seconds is None else clock() + seconds
        self._entered: list[tuple[limits.Limit, attempts.Attempts]] = []

    @property
    def is_over(self) -> bool:
        """Whether there is no time left, so that nobody waits for the answer."""
        return self._clock() >= self._until

    def __enter__(self) -> "Incoming":
        limit = limits.begin_anew(self, self.seconds or 0.0, self._until, self._clock)
        marker = attempts.Attempts(self.attempt)
        attempts.begin(marker)
        self._entered.append((limit, marker))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        limit, marker = self._entered.pop()
        attempts.end(marker)
        limits.end(limit)


def incoming(headers: Headers, *, clock: Callable[[], float] = time.monotonic) -> Incoming:
    """What a call brought along in its headers; those that make no sense are left aside.

    Time may come as `X-Request-Timeout-Ms`, `grpc-timeout` or `x-envoy-expected-rq-timeout-ms`: the
    shortest counts.
    """
    items = headers.items() if isinstance(headers, Mapping) else headers
    seconds: list[float] = []
    attempt = None
    for name, value in items:
        lowered = name.lower()
        if lowered in ("x-request-timeout-ms", "x-envoy-expected-rq-timeout-ms"):
            seconds += _millis(value)
        elif lowered == "grpc-timeout":
            seconds += _grpc(value)
        elif lowered == "x-retry-attempt" and re.fullmatch("[0-9]{1,9}", value):
            attempt = min(int(value), MOST_ATTEMPT)
    return Incoming(min([*seconds, MOST_SECONDS]) if seconds else None, attempt, clock)


def _millis(text: str) -> list[float]:
    return [int(text) / 1000] if re.fullmatch("[0-9]{1,15}", text) else []


def _grpc(text: str) -> list[float]:
    found = re.fullmatch("([0-9]{1,8})([HMSmun])", text)
    return [int(found[1]) * _UNITS[found[2]]] if found else []
