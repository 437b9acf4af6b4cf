"""The pauses between attempts. Pure: time and randomness are arguments."""

import re
from collections.abc import Callable

from switchgear.clock import parse_retry_after_header
from switchgear.patterns.parameters import RetryParameters

MAX_DOUBLINGS = 64
RETRY_AFTER_JITTER = 0.1
"""Up to so much of it is added, or `base_seconds` if that is more."""


def backoff_seconds(retries: int, parameters: RetryParameters, rng: Callable[[], float]) -> float:
    """Full jitter after so many retries, from 0: U(0, min(cap, base·2ⁿ)), or of base·(n+1)."""
    base = parameters.base_seconds
    if parameters.backoff == "linear":
        ceiling = base * (retries + 1)
    else:
        ceiling = base * 2.0 ** min(retries, MAX_DOUBLINGS)
    return rng() * min(parameters.cap_seconds, ceiling)


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds that a `Retry-After` asks for, None if it can't be parsed. `now` is UNIX
    seconds by the sender's clock."""
    # Parts of a second are not HTTP's, but some send them.
    if text is not None and re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", text):
        return float(text)
    return parse_retry_after_header(text, now)


def jitter_retry_after(told: float, parameters: RetryParameters, rng: Callable[[], float]) -> float:
    """Return slightly more than `told`, never less: all clients were given the same time."""
    least = min(parameters.base_seconds, parameters.cap_seconds)
    return told + rng() * max(told * RETRY_AFTER_JITTER, least)
