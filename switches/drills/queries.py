"""Queries on switches that no drill has proven, and on failed drills."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from switches.episodes import live_drills
from switches.models import Drill, Switch
from switches.scopes import GLOBAL

PROOF_DURATION = timedelta(days=90)
"""A drill proves a switch for this long; then what it stops may have changed too much."""


def drillable_switches() -> QuerySet[Switch]:
    """Return all switches that can be drilled: all but the global one."""
    return Switch.objects.exclude(scope=GLOBAL.name)


def never_proven() -> QuerySet[Switch]:
    return drillable_switches().filter(last_proven_at__isnull=True)


def unproven(now: datetime) -> QuerySet[Switch]:
    """Return the drillable switches that were never proven, or not within 90 days."""
    long_ago = Q(last_proven_at__lt=now - PROOF_DURATION)
    return drillable_switches().filter(Q(last_proven_at__isnull=True) | long_ago)


def is_unproven(switch: Switch, now: datetime) -> bool:
    """Return True if :func:`unproven` includes the switch."""
    if switch.scope == GLOBAL.name:
        return False
    return switch.last_proven_at is None or switch.last_proven_at < now - PROOF_DURATION


def failed_drills() -> QuerySet[Drill]:
    """Return the newest failed drill of each switch, unless a later one passed."""
    ended = Drill.objects.filter(
        switch=OuterRef("switch"),
        mode=live_drills.LIVE,
        passed__isnull=False,
        pk__gt=OuterRef("pk"),
    )
    return Drill.objects.filter(~Exists(ended), mode=live_drills.LIVE, passed=False)
