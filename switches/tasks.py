"""The ticks of switches."""

from datetime import datetime

from controlplane.core import ticks
from switches import services


@ticks.tick("switches.expire", seconds=1, queue="switches")
def expire_switches(now: datetime) -> int:
    return services.expire_due(now)
