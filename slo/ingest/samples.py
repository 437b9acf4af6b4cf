"""Samples and counted events, collected by source before they are recorded. Pure."""

from datetime import datetime
from typing import NamedTuple

from slo.arithmetic.increments import Increment, Sample, round_count, to_micros

SourceKey = tuple[int, str]
"""The id of an SLI, and the name of a source of its counters."""
SourceIncrement = tuple[SourceKey, Increment]


class SampleBatch:
    """New samples to record, and start times reported with them, both by source and boot."""

    def __init__(self) -> None:
        self.by_source: dict[SourceKey, dict[str, list[Sample]]] = {}
        self.started: dict[SourceKey, dict[str, int]] = {}

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
        """Add a sample of the SLI with id `sli`; times are aware, counts at most 2^53."""
        key = sli, source
        sample = Sample(to_micros(at), round_count(good), round_count(total))
        boots = self.by_source.get(key)
        if boots is None:
            self.by_source[key] = {boot: [sample]}
        else:
            boots.setdefault(boot, []).append(sample)
        if started_at is not None:
            started = self.started.setdefault(key, {})
            began = to_micros(started_at)
            started[boot] = min(started.get(boot, began), began)


class CountedEvents(NamedTuple):
    """Events of an SLI (id) that a source counted between two times.

    If the times are at most 2 minutes apart, the minutes between them count as covered.
    """

    sli: int
    source: str
    began_at: datetime
    ended_at: datetime
    good: float
    total: float
