"""Prometheus exposition for the web process and the separate data plane; runs without Django."""

import platform
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

import controlplane

from .content_encoding import accepts_gzip, compress_gzip

CACHE_SECONDS = 5.0
MAX_FORMATS = 8
"""Maximum number of cached formats; a scraper's `Accept` header selects one."""
GZIP_LEVEL = 4


def make_registry(collector: Collector) -> CollectorRegistry:
    """Return a Prometheus registry with the process's own metrics and those of `collector`."""
    registry = CollectorRegistry()
    for make_collector in (ProcessCollector, PlatformCollector, GCCollector):
        make_collector(registry=registry)
    registry.register(collector)
    return registry


def encode_metrics(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Encode all metrics in the best format for an `Accept` header; also return the content type.

    Gauges and counters are encoded here, several times as fast as by the library.
    """
    encode, content_type = choose_encoder(accept)
    is_openmetrics = content_type.startswith("application/openmetrics-text")
    others = _FixedCollector([])
    lines: list[str] = []
    for metric in registry.collect():
        if metric.type in ("gauge", "counter"):
            lines += _encode_metric(metric, is_openmetrics)
        else:
            others.metrics.append(metric)
    return "".join(lines).encode() + encode(others), content_type


class _FixedCollector(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self.metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self.metrics


def _encode_metric(metric: Metric, is_openmetrics: bool) -> Iterator[str]:
    counts = metric.type == "counter" and not is_openmetrics
    name = f"{metric.name}_total" if counts else metric.name
    documentation = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    if is_openmetrics:
        documentation = documentation.replace('"', r"\"")
    yield f"# HELP {name} {documentation}\n# TYPE {name} {metric.type}\n"
    yield from map(_encode_sample, metric.samples)


def _encode_sample(sample: Sample) -> str:
    value = _format_value(sample.value)
    if not sample.labels:
        return f"{sample.name} {value}\n"
    labels = ",".join([f'{name}="{_escape(text)}"' for name, text in sample.labels.items()])
    return f"{sample.name}{{{labels}}} {value}\n"


def _format_value(value: float) -> str:
    # For integers faster than the library, with the same result.
    return f"{value:d}.0" if type(value) is int else str(floatToGoString(value))  # type: ignore[no-untyped-call]


def _escape(label: str) -> str:
    if "\\" in label or '"' in label or "\n" in label:
        return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return label


@dataclass(frozen=True)
class Exposition:
    """The metrics in one exposition format: the body of a scrape response, gzipped at most once."""

    content: bytes
    content_type: str

    @cached_property
    def gzip(self) -> bytes:
        return compress_gzip(self.content, GZIP_LEVEL)

    def headers(self, accept_encoding: str) -> tuple[bytes, dict[str, str]]:
        """Return the response body, compressed if the scraper accepts that, and the headers."""
        is_gzip = accepts_gzip(accept_encoding.encode("latin-1"))
        body = self.gzip if is_gzip else self.content
        headers = {
            "Content-Type": self.content_type,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Vary": "Accept, Accept-Encoding",
        }
        return body, headers | ({"Content-Encoding": "gzip"} if is_gzip else {})


@dataclass
class ExpositionCache:
    """A cache of metrics by exposition format.

    An entry lasts :data:`CACHE_SECONDS`, or until the result of `version()` changes.
    """

    build: Callable[[str], tuple[bytes, str]]
    version: Callable[[], object]
    clock: Callable[[], float]
    _entries: dict[str, tuple[Exposition, float, object]] = field(default_factory=dict, init=False)
    _building: threading.Lock = field(default_factory=threading.Lock, init=False)

    def get(self, accept: str) -> Exposition:
        content_type = choose_encoder(accept)[1]
        with self._building:
            version, now = self.version(), self.clock()
            if content_type in self._entries:
                found, built_at, built_version = self._entries[content_type]
                if built_version == version and 0 <= now - built_at < CACHE_SECONDS:
                    return found
            if len(self._entries) >= MAX_FORMATS:
                self._entries.clear()
            found = Exposition(*self.build(accept))
            self._entries[content_type] = found, now, version
            return found

    def clear(self) -> None:
        self._entries.clear()


def build_info() -> Metric:
    """Return the build info metric: 1, labeled with the versions of Switchgear and Python."""
    return make_family(
        "switchgear_build_info",
        "Always 1; the versions of Switchgear and Python are labels.",
        ["version", "python"],
        [((controlplane.__version__, platform.python_version()), 1)],
    )


def make_family(
    name: str,
    help_text: str,
    labels: Sequence[str],
    samples: Iterable[tuple[Sequence[str], float]],
    family_type: type[GaugeMetricFamily | CounterMetricFamily] = GaugeMetricFamily,
) -> Metric:
    """Return a Prometheus metric; each of `samples` is a pair of label values and a number."""
    family = family_type(name, help_text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def make_gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_text, value=value)


def snapshot_metrics(version: int | None, age_seconds: float | None) -> Iterator[Metric]:
    """Yield metrics of the snapshot of switches that this process serves, if one is loaded."""
    if version is None:
        return
    yield make_gauge("switchgear_snapshot_version", "Version of the served snapshot.", version)
    yield make_gauge(
        "switchgear_snapshot_age_seconds",
        "Seconds since the served snapshot was confirmed against the database.",
        age_seconds or 0.0,
    )
