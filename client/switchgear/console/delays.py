"""Jittered delays between requests to the console. Pure: time and randomness are arguments.

Every delay is drawn from a range: a thousand clients must not return at one moment after an outage
of the console.
"""

from collections.abc import Callable

from switchgear.clock import parse_retry_after_header

Draw = Callable[[], float]
"""A function that returns a random number, uniform in [0, 1)."""

FIRST_SECONDS, MAX_SECONDS = 2.0, 20.0
REFUSED_FIRST_SECONDS, REFUSED_MAX_SECONDS = 15.0, 60.0
"""Backoff after 401 and 403, which last until the token is changed."""
MAX_RETRY_AFTER_SECONDS = 60.0
POLL_JITTER = 0.2


def backoff_delay(
    failures: int,
    draw: Draw,
    first_seconds: float = FIRST_SECONDS,
    max_seconds: float = MAX_SECONDS,
) -> float:
    """Return seconds with full jitter: U(0, min(max_seconds, first_seconds·2ⁿ⁻¹))."""
    ceiling: float = first_seconds * 2 ** min(max(failures, 1) - 1, 16)
    return draw() * min(max_seconds, ceiling)


def failure_delay(
    failures: int,
    draw: Draw,
    status: int | None = None,
    retry_after_seconds: float | None = None,
    hint_seconds: float | None = None,
) -> float:
    """Return :func:`backoff_delay`, longer if the request was refused with 401 or 403.

    `retry_after_seconds` is added, since all clients receive the same value. `hint_seconds` is a
    stream's reconnection delay, the lower limit of the range.
    """
    if status in (401, 403):
        pause = backoff_delay(failures, draw, REFUSED_FIRST_SECONDS, REFUSED_MAX_SECONDS)
    else:
        first = max(FIRST_SECONDS, min(hint_seconds or 0.0, MAX_SECONDS))
        pause = backoff_delay(failures, draw, first)
    return pause if retry_after_seconds is None else retry_after_seconds + pause


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds of a `Retry-After` header, 60 at most; None if invalid."""
    seconds = parse_retry_after_header(text, now)
    return None if seconds is None else min(seconds, MAX_RETRY_AFTER_SECONDS)


def poll_delay(seconds: float, draw: Draw) -> float:
    return seconds * (1 + POLL_JITTER * (2 * draw() - 1))
