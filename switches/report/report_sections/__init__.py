"""Report sections about switches."""

from . import (
    decisions,
    emergency_orders,
    engaged_switches,
    ownership,
    ramps,
    records,
    weekly_activity,
)

__all__ = [
    "decisions",
    "emergency_orders",
    "engaged_switches",
    "ownership",
    "ramps",
    "records",
    "weekly_activity",
]
