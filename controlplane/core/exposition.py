"""Prometheus exposition shared by the web process and the separate data plane.

Runs without Django.
"""

import platform
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

import controlplane

from .content_encoding import accepts_gzip, compress

CACHE_SECONDS = 5.0
MAX_FORMATS = 8
"""Maximum number of cached formats, by `Accept` header."""
GZIP_LEVEL = 4
END_OF_OPENMETRICS = b"# EOF\n"


class Source(Protocol):
    """A source of metrics, collected anew at each scrape."""

    def collect(self) -> Iterable[Metric]: ...


def registry(ours: Source) -> CollectorRegistry:
    """Return a registry with these metrics and those of the process."""
    made = CollectorRegistry()
    ProcessCollector(registry=made)
    PlatformCollector(registry=made)
    GCCollector(registry=made)
    made.register(ours)
    return made


def text(of: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return all metrics in the best format the scraper accepts, and its content type.

    Gauges and counters are encoded here, several times as fast as by the library, which encodes
    the other types.
    """
    encode, content_type = choose_encoder(accept)
    is_openmetrics = content_type.startswith("application/openmetrics-text")
    others = _FixedCollector([])
    lines: list[str] = []
    for metric in of.collect():
        if metric.type in ("gauge", "counter"):
            lines += _lines(metric, is_openmetrics)
        else:
            others.metrics.append(metric)
    rest = encode(others)
    if is_openmetrics:
        rest = rest.removesuffix(END_OF_OPENMETRICS)
    end = END_OF_OPENMETRICS if is_openmetrics else b""
    return "".join(lines).encode() + rest + end, content_type


class _FixedCollector(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self.metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self.metrics


def _lines(metric: Metric, is_openmetrics: bool) -> Iterator[str]:
    counts = metric.type == "counter" and not is_openmetrics
    name = f"{metric.name}_total" if counts else metric.name
    documentation = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    if is_openmetrics:
        documentation = documentation.replace('"', r"\"")
    yield f"# HELP {name} {documentation}\n# TYPE {name} {metric.type}\n"
    yield from map(_line, metric.samples)


def _line(sample: Sample) -> str:
    value = _number(sample.value)
    if not sample.labels:
        return f"{sample.name} {value}\n"
    labels = ",".join([f'{name}="{_escaped(text)}"' for name, text in sample.labels.items()])
    return f"{sample.name}{{{labels}}} {value}\n"


def _number(value: float) -> str:
    """Format a value as the library does, faster for integers."""
    return f"{value:d}.0" if type(value) is int else str(floatToGoString(value))  # type: ignore[no-untyped-call]


def _escaped(label: str) -> str:
    if "\\" in label or '"' in label or "\n" in label:
        return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return label


@dataclass(frozen=True)
class Exposition:
    """The body of a scrape and its content type; compressed at most once."""

    content: bytes
    content_type: str

    @cached_property
    def gzip(self) -> bytes:
        return compress(self.content, GZIP_LEVEL)

    def headers(self, accept_encoding: str) -> tuple[bytes, dict[str, str]]:
        """Return the body in the encoding that the scraper accepts, and the answer's headers."""
        packed = accepts_gzip(accept_encoding.encode("latin-1"))
        body = self.gzip if packed else self.content
        headers = {
            "Content-Type": self.content_type,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Vary": "Accept, Accept-Encoding",
        }
        return body, headers | ({"Content-Encoding": "gzip"} if packed else {})


@dataclass
class _CacheEntry:
    exposition: Exposition
    built_at: float
    version: object


@dataclass
class Cache:
    """Expositions by format, cached for :data:`CACHE_SECONDS` or until `version()` changes.

    One caller builds at a time; others wait for its result. `clock` is monotonic, in seconds.
    """

    build: Callable[[str], tuple[bytes, str]]
    version: Callable[[], object]
    clock: Callable[[], float]
    _kept: dict[str, _CacheEntry] = field(default_factory=dict, init=False)
    _building: threading.Lock = field(default_factory=threading.Lock, init=False)

    def get(self, accept: str) -> Exposition:
        content_type = choose_encoder(accept)[1]
        with self._building:
            version, now = self.version(), self.clock()
            found = self._kept.get(content_type)
            if (
                found is None
                or found.version != version
                or not 0 <= now - found.built_at < CACHE_SECONDS
            ):
                if len(self._kept) >= MAX_FORMATS:
                    self._kept.clear()
                found = _CacheEntry(Exposition(*self.build(accept)), now, version)
                self._kept[content_type] = found
            return found.exposition

    def clear(self) -> None:
        self._kept.clear()


def build_info() -> Metric:
    """Return the build info metric: 1, labeled with the versions of Switchgear and Python."""
    family = GaugeMetricFamily(
        "switchgear_build_info",
        "1, with the versions of Switchgear and of Python as labels.",
        labels=["version", "python"],
    )
    family.add_metric([controlplane.__version__, platform.python_version()], 1)
    return family


def gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_text, value=value)


def snapshot(version: int | None, age_seconds: float | None) -> Iterator[Metric]:
    """Yield the metrics of the snapshot served by this process; none before one is loaded."""
    if version is None:
        return
    yield gauge("switchgear_snapshot_version", "Version of the served snapshot.", version)
    yield gauge(
        "switchgear_snapshot_age_seconds",
        "Seconds since the served snapshot was confirmed against the database.",
        age_seconds or 0.0,
    )
