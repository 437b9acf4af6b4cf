"""SLOs to count for, and samples as sources send them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from slo.arithmetic.increments import from_micros
from slo.counters import reader, slis
from slo.ingest import recorder
from slo.ingest.recorder import Sample
from slo.models import Sli, Slo

from .oracle import Told

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTE = int(NOW.timestamp()) // 60
"""The minute that ends at NOW."""


def objective(name: str = "core-availability", **fields: Any) -> Sli:
    """An SLO, and its counters."""
    said = {"kind": "availability", "target": Decimal("0.999"), "source": {"type": "push"}}
    slo = Slo.objects.create(name=name, created_at=NOW, changed_at=NOW, **{**said, **fields})
    return slis.get_or_create_sli(slo)


def at(seconds: float) -> datetime:
    """So many seconds after NOW, or before."""
    return NOW + timedelta(seconds=seconds)


def sample(sli: Sli, seconds: float, good: float, total: float, **more: Any) -> Sample:
    """One that was taken so many seconds after NOW, or before."""
    return Sample(
        sli.pk,
        more.pop("source", "a"),
        more.pop("boot", "1"),
        at(seconds),
        good,
        total,
        **more,
    )


def push(sli: Sli, told: Iterable[Told], now: datetime = NOW, **options: Any) -> int:
    """Take in what the oracle was told as well."""
    samples = [
        Sample(
            sli.pk,
            one.source,
            one.boot,
            from_micros(one.at),
            one.good,
            one.total,
            None if one.started is None else from_micros(one.started),
        )
        for one in told
    ]
    return recorder.record_samples(samples, now=now, **options)[sli.pk]


def counted(sli: Sli, first: int, last: int) -> list[tuple[float, float, int]]:
    """Good, total and covered minutes at the end of each minute, as they are looked up."""
    found = reader.load_counts({sli.pk: range(first, last + 1)})
    return [tuple(found[sli.pk, minute]) for minute in range(first, last + 1)]
