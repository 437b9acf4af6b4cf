"""Drills that come round: each is begun once when its time has come, or it is told why not."""

from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core.actors import system
from controlplane.core.audit import services as audit
from controlplane.core.canonical import timestamp
from controlplane.core.errors import Conflict
from controlplane.core.outbox import services as outbox
from switches import publication
from switches.drills import moves, services
from switches.models import DrillSchedule, Switch
from switches.services.turns import each

ACTOR = system("drills")
TRY_AGAIN = timedelta(days=1)
"""One that could not begin is tried again after a day, or at its next round if that is sooner."""


def begin_due(now: datetime) -> int:
    """Begin the drills whose time has come; how many. Any number of ticks begin each once."""
    due = DrillSchedule.objects.filter(next_at__lte=now).values_list("pk", flat=True)
    return each(list(due.order_by("next_at", "pk")), lambda pk: _one(pk, now), "drills not begun")


def _one(schedule_id: int, now: datetime) -> int:
    with transaction.atomic():
        publication.lock()
        row = DrillSchedule.objects.filter(pk=schedule_id, next_at__lte=now).first()
        if row is None:  # Another tick was sooner, or nobody wants it any more.
            return 0
        switch = services.present(row.switch_id)
        try:
            with transaction.atomic():
                services.begin_scheduled(row, ACTOR, now)
        except Conflict as conflict:
            row.next_at = min(now + TRY_AGAIN, _next_round(row, now))
            row.save(update_fields=["next_at"])
            _missed(switch, row, conflict.detail, now)
            return 0
        row.next_at = _next_round(row, now)
        row.save(update_fields=["next_at"])
        return 1


def _next_round(row: DrillSchedule, now: datetime) -> datetime:
    """The first one after `now`, counted from when it was scheduled: what began late, or had to be
    tried again, moves none of those that follow."""
    every = timedelta(days=row.every_days)
    return row.created_at + ((now - row.created_at) // every + 1) * every


def _missed(switch: Switch, row: DrillSchedule, why: str, now: datetime) -> None:
    next_at = timestamp(row.next_at)
    entry = audit.record(
        actor=ACTOR,
        action="drill.missed",
        target=switch.pk,
        reason=why,
        after={"mode": row.mode, "every_days": row.every_days, "next_at": next_at},
        now=now,
    )
    outbox.announce(
        event="drill.missed",
        event_key=f"audit:{entry.pk}",
        scope=switch.scope,
        severity="warning",
        subject=f"drills:{switch.pk}",
        facts=moves.facts(switch, reason=row.reason, by=row.created_by, said=why, next_at=next_at),
        now=now,
    )
