"""How long things took, summed up."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True)
class Delays:
    """In milliseconds, of `count` measurements; `stall_ms` is the machine's own longest stall."""

    count: int
    p50_ms: float
    p99_ms: float
    worst_ms: float
    stall_ms: float = 0.0


def summed_up(delays_ms: Iterable[float], stall_ms: float = 0.0) -> Delays:
    """Of at least two."""
    found = list(delays_ms)
    ranked = quantiles(found, n=100, method="inclusive")
    return Delays(len(found), ranked[49], ranked[98], max(found), stall_ms)
