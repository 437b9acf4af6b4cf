"""Metrics as text: what a web process and a data plane by itself say in the same way.

Nothing here needs Django.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder


class Source(Protocol):
    """Whatever has figures, collected anew at each scrape."""

    def collect(self) -> Iterable[Metric]: ...


def registry(ours: Source) -> CollectorRegistry:
    """Our figures beside those of the process itself."""
    made = CollectorRegistry()
    ProcessCollector(registry=made)
    PlatformCollector(registry=made)
    GCCollector(registry=made)
    made.register(ours)
    return made


def text(of: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """All metrics in the best format the scraper accepts, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(of), content_type


def gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_text, value=value)


def snapshot(version: int | None, age_seconds: float | None) -> Iterator[Metric]:
    """What is served in this process; nothing before there is anything to serve."""
    if version is None:
        return
    yield gauge("switchgear_snapshot_version", "Version of the served snapshot.", version)
    yield gauge(
        "switchgear_snapshot_age_seconds",
        "Seconds since the served snapshot was confirmed against the database.",
        age_seconds or 0.0,
    )
