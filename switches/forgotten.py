"""When a switch counts as forgotten: the same on the page of what waits and in the report."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Greatest

UNTOUCHED = timedelta(days=7)
"""After so long without a sign of life, nobody seems to think of it."""

LOOKED_AT = Greatest("engaged_at", "acknowledged_at", "reconfirmed_at", "switch__requested_at")
"""When somebody last engaged, acknowledged, re-confirmed or extended it."""

OVERDUE = "overdue, and nobody acknowledged it"
UNCONFIRMED = "permanent, and not confirmed in time"
LEFT_ALONE = "left alone"


def signs(now: datetime) -> Mapping[str, Q]:
    """What shows that it is forgotten, by its name; the episodes have `looked_at`."""
    return {
        OVERDUE: Q(overdue_at__isnull=False, acknowledged_at__isnull=True),
        UNCONFIRMED: unconfirmed(now),
        LEFT_ALONE: Q(permanent=False, looked_at__lte=now - UNTOUCHED),
    }


def unconfirmed(now: datetime) -> Q:
    """Permanent, and nobody said within its week that it has to stay; nor is it being released."""
    return Q(permanent=True, reconfirm_due_at__lte=now, allow_percent=0)
