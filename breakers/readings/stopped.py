"""Readings of dependencies whose callers have stopped cleanly, which end their alerts."""

from collections.abc import Collection
from datetime import datetime, timedelta

from breakers.states import unhealthy
from controlplane.core.threshold_metrics import MetricReading

STOPPED_FOR = timedelta(minutes=2)
"""Time after which a stop ends alerts, so that a restart does not open them anew."""
ENDED = "All instances of the calling service have stopped."


def read_stopped(wanted: Collection[str], now: datetime) -> dict[str, MetricReading]:
    """Return, by name, the last reading of each of these dependencies whose caller has stopped."""
    stopped = unhealthy.find_stopped(wanted, now - STOPPED_FOR)
    return {
        name: MetricReading(
            subject=name, value=None, beyond=None, samples=0, summary="", path="", ended=ENDED
        )
        for name in sorted(stopped)
    }
