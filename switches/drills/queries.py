"""Queries for switches not proven by a drill, and for failed drills."""

from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from switches.episodes import live_drills
from switches.models import Drill, Switch, SwitchState
from switches.scopes import GLOBAL

PROOF_DURATION = timedelta(days=90)
"""Time for which a passed drill proves a switch."""


def list_drillable_switches() -> QuerySet[Switch]:
    """Return all switches except the global one, which can't be drilled."""
    return Switch.objects.exclude(scope=GLOBAL.name)


def list_released_switch_ids(limit: int) -> list[str]:
    """Return up to `limit` ids of switches that can be drilled now, longest unproven first."""
    released = Switch.objects.in_state(SwitchState.RELEASED).exclude(scope=GLOBAL.name)
    oldest_first = released.order_by(F("last_proven_at").asc(nulls_first=True), "pk")
    return list(oldest_first.values_list("pk", flat=True)[:limit])


def find_never_proven() -> QuerySet[Switch]:
    return list_drillable_switches().filter(last_proven_at__isnull=True)


def find_unproven(now: datetime) -> QuerySet[Switch]:
    """Return the drillable switches without a passed drill in the last 90 days."""
    long_ago = Q(last_proven_at__lt=now - PROOF_DURATION)
    return list_drillable_switches().filter(Q(last_proven_at__isnull=True) | long_ago)


def is_unproven(switch: Switch, now: datetime) -> bool:
    """Return True if :func:`find_unproven` includes the switch."""
    if switch.scope == GLOBAL.name:
        return False
    return switch.last_proven_at is None or switch.last_proven_at < now - PROOF_DURATION


def find_failed_drills() -> QuerySet[Drill]:
    """Return each switch's latest drill of each mode if it failed.

    Dry and cancelled drills are ignored.
    """
    ended = Drill.objects.filter(
        switch=OuterRef("switch"),
        mode=OuterRef("mode"),
        passed__isnull=False,
        pk__gt=OuterRef("pk"),
    )
    return Drill.objects.filter(~Exists(ended), passed=False).exclude(mode=live_drills.DRY)
