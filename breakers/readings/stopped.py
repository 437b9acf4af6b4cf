"""Readings of dependencies whose instances have all stopped cleanly, which end their alerts."""

from collections.abc import Collection
from datetime import datetime

from breakers.states import unhealthy
from controlplane.core.threshold_metrics import MetricReading

ENDED = "Every instance that reported it has stopped."


def read_stopped(wanted: Collection[str], now: datetime) -> dict[str, MetricReading]:
    """Return the last reading of each of these dependencies, by name, if its instances stopped."""
    return {
        name: MetricReading(
            subject=name, value=None, beyond=None, samples=0, summary="", path="", ended=ENDED
        )
        for name in sorted(unhealthy.find_stopped(wanted, now))
    }
