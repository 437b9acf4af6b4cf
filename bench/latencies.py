"""Summaries of latencies."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True)
class Latencies:
    """Milliseconds of `count` measurements; `stall_ms` is the machine's own longest stall."""

    count: int
    p50_ms: float
    p99_ms: float
    worst_ms: float
    stall_ms: float = 0.0


def summarize(delays_ms: Iterable[float], stall_ms: float = 0.0) -> Latencies:
    """Summarize at least two measurements."""
    found = list(delays_ms)
    ranked = quantiles(found, n=100, method="inclusive")
    return Latencies(len(found), ranked[49], ranked[98], max(found), stall_ms)
