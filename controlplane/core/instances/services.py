"""Forgetting instances that are gone and acknowledgements that are old."""

from datetime import datetime

from controlplane.core import retention
from controlplane.core.instances.retention_rules import ACKNOWLEDGEMENTS, INSTANCES


def forget(now: datetime, *, most: int) -> int:
    """Delete at most `most` instances that neither polled, reported nor asked for 24 h, and as many
    acknowledgements older than 8 days; returns how many."""
    return retention.purge([INSTANCES, ACKNOWLEDGEMENTS], now, at_once=most, most=most)
