"""SLOs to count for, and samples as sources send them."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from slo.counters import reader
from slo.ingest import recorder
from slo.ingest.samples import SampleBatch
from slo.models import Sli, Slo

from .oracle import OracleSample

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTE = int(NOW.timestamp()) // 60
"""The minute that ends at NOW."""


class SentSample(NamedTuple):
    """A sample of an SLI (its id) as a source sends it."""

    sli: int
    source: str
    boot: str
    at: datetime
    good: float
    total: float
    started_at: datetime | None = None


def record(samples: Iterable[SentSample], now: datetime = NOW, **options: Any) -> Counter[int]:
    batch = SampleBatch()
    for one in samples:
        batch.add(*one)
    return recorder.record_samples(batch, now=now, **options)


def objective(name: str = "core-availability", **fields: Any) -> Sli:
    """Create an SLO; return its counters."""
    document = {"kind": "availability", "target": Decimal("0.999"), "source": {"type": "push"}}
    slo = Slo.objects.create(name=name, created_at=NOW, changed_at=NOW, **{**document, **fields})
    return reader.get_or_create_sli(slo)


def moment_at(seconds: float) -> datetime:
    """Return a moment in seconds after NOW, or before."""
    return NOW + timedelta(seconds=seconds)


def moment_at_micros(at: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at)


def sample(sli: Sli, seconds: float, good: float, total: float, **more: Any) -> SentSample:
    """Return a sample taken in seconds after NOW, or before."""
    return SentSample(
        sli.pk,
        more.pop("source", "a"),
        more.pop("boot", "1"),
        moment_at(seconds),
        good,
        total,
        **more,
    )


def push(sli: Sli, sent: Iterable[OracleSample], now: datetime = NOW, **options: Any) -> int:
    """Record what the oracle was given."""
    samples = [
        SentSample(
            sli.pk,
            one.source,
            one.boot,
            moment_at_micros(one.at),
            one.good,
            one.total,
            None if one.started is None else moment_at_micros(one.started),
        )
        for one in sent
    ]
    return record(samples, now=now, **options)[sli.pk]


def load_counters(sli: Sli, first: int, last: int) -> list[tuple[float, float, int]]:
    """Return good, total and covered minutes at the end of each minute, as looked up."""
    counts = reader.load_counts({sli.pk: range(first, last + 1)})
    return [tuple(counts[sli.pk, minute]) for minute in range(first, last + 1)]
