"""Summaries of latencies."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True)
class Latencies:
    """A summary of `count` latencies; `stall_ms` is the machine's longest stall meanwhile."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    worst_ms: float
    stall_ms: float = 0.0


def summarize(delays_ms: Iterable[float], stall_ms: float = 0.0) -> Latencies:
    """Return percentiles and maximum of at least two latencies."""
    found = list(delays_ms)
    ranked = quantiles(found, n=100, method="inclusive")
    return Latencies(len(found), ranked[49], ranked[94], ranked[98], max(found), stall_ms)
