"""Which switches nobody has rehearsed: they may not work when they are needed."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from switches.drills import live
from switches.models import Drill, Switch
from switches.scopes import GLOBAL

PROVEN_FOR = timedelta(days=90)
"""A switch is proven for this long; then whatever it stops may have changed too much."""


def can_be_drilled() -> QuerySet[Switch]:
    """All but the global one, which is not drilled."""
    return Switch.objects.exclude(scope=GLOBAL.name)


def never_proven() -> QuerySet[Switch]:
    return can_be_drilled().filter(last_proven_at__isnull=True)


def unproven(now: datetime) -> QuerySet[Switch]:
    """Never proven, or not for 90 days."""
    long_ago = Q(last_proven_at__lt=now - PROVEN_FOR)
    return can_be_drilled().filter(Q(last_proven_at__isnull=True) | long_ago)


def is_unproven(switch: Switch, now: datetime) -> bool:
    """As :func:`unproven`, of one switch."""
    if switch.scope == GLOBAL.name:
        return False
    return switch.last_proven_at is None or switch.last_proven_at < now - PROVEN_FOR


def failed() -> QuerySet[Drill]:
    """The newest drill of each switch that failed, unless a later one has passed."""
    ended = Drill.objects.filter(
        switch=OuterRef("switch"), mode=live.LIVE, passed__isnull=False, pk__gt=OuterRef("pk")
    )
    return Drill.objects.filter(~Exists(ended), mode=live.LIVE, passed=False)
