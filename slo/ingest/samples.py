"""Samples of cumulative counters, collected by source before they are recorded. Pure."""

from datetime import datetime
from typing import NamedTuple

from slo.arithmetic.increments import Sample, round_count, to_micros

SourceKey = tuple[int, str]
"""A source of an SLI: the SLI's id, and the source's name."""


class BootSample(NamedTuple):
    """A sample of one boot, and since when the boot counts from zero, if it reported that."""

    boot: str
    sample: Sample
    started: int | None


class SampleBatch:
    """New samples, grouped by source. Counts are at most 2^53."""

    def __init__(self) -> None:
        self.by_source: dict[SourceKey, list[BootSample]] = {}

    def add(
        self,
        sli: int,
        source: str,
        boot: str,
        at: datetime,
        good: float,
        total: float,
        started_at: datetime | None = None,
    ) -> None:
        """Add a sample of an SLI (its id); times are aware."""
        sample = Sample(to_micros(at), round_count(good), round_count(total))
        started = None if started_at is None else to_micros(started_at)
        self.by_source.setdefault((sli, source), []).append(BootSample(boot, sample, started))


class CountedEvents(NamedTuple):
    """Events of an SLI (its id) that a source counted by itself between two moments.

    If they are at most 2 minutes apart, that span is covered.
    """

    sli: int
    source: str
    began_at: datetime
    ended_at: datetime
    good: float
    total: float
