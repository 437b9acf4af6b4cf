"""Deletion of inactive instances and old acknowledgements."""

from datetime import datetime

from controlplane.core import retention
from controlplane.core.instances.retention_rules import ACKNOWLEDGEMENTS, INSTANCES


def purge_inactive(now: datetime, *, most: int) -> int:
    """Delete at most `most` inactive instances and return their number.

    An instance is inactive without a poll, report or check for 24 h. Also deletes at
    most `most` acknowledgements older than 8 days.
    """
    return retention.purge([INSTANCES, ACKNOWLEDGEMENTS], now, at_once=most, most=most)
