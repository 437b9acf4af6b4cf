"""Database conditions for neglected episodes, used by the attention page and the weekly report."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Greatest

NEGLECT_AFTER = timedelta(days=7)
"""Time without any action after which an episode counts as neglected."""

LAST_TOUCHED = Greatest("engaged_at", "acknowledged_at", "reconfirmed_at", "switch__requested_at")
"""The time of the last engage, acknowledgment, re-confirmation or extension."""

OVERDUE = "overdue and not acknowledged"
UNCONFIRMED = "permanent and not re-confirmed in time"
LEFT_ALONE = "left alone"


def neglect_conditions(now: datetime) -> Mapping[str, Q]:
    """Return a database condition for each kind of neglected episode, by description.

    The query must be annotated with `looked_at`, the time of the last action (`LAST_TOUCHED`).
    """
    return {
        OVERDUE: Q(overdue_at__isnull=False, acknowledged_at__isnull=True),
        UNCONFIRMED: unconfirmed_condition(now),
        LEFT_ALONE: Q(permanent=False, looked_at__lte=now - NEGLECT_AFTER),
    }


def unconfirmed_condition(now: datetime) -> Q:
    """Return the condition for permanent, non-ramping episodes past their re-confirmation date."""
    return Q(permanent=True, reconfirm_due_at__lte=now, allow_percent=0)
