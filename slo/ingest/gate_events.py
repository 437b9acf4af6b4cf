"""Events of SLOs over short spans, recorded for the gates of ramps."""

from collections.abc import Iterable, Mapping

from controlplane.core.gates import event_counts
from slo.arithmetic.increments import Increment
from slo.counters.writer import LockedSli

from .samples import SourceKey

SourceIncrement = tuple[SourceKey, Increment]


def record_gate_events(grown: Iterable[SourceIncrement], locked: Mapping[int, LockedSli]) -> None:
    """Record whole events that sources of SLOs counted; other SLIs have no gates."""
    event_counts.record(
        [
            {
                "slo": name,
                "instance": source,
                "began": step.began,
                "ended": step.ended,
                "good": int(step.good),
                "total": int(step.total),
            }
            for (sli, source), step in grown
            if (name := locked[sli].slo) and step.total >= 1
        ]
    )
