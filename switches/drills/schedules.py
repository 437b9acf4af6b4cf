"""Start of scheduled drills, or a notification if one can't start."""

from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core.actors import system_actor
from controlplane.core.canonical import timestamp
from controlplane.core.errors import Conflict
from controlplane.core.outbox import services as outbox
from switches import publication
from switches.episodes.batches import process_each
from switches.models import DrillSchedule, Switch

from . import services, transitions

ACTOR = system_actor("drills")
RETRY_AFTER = timedelta(days=1)
"""Delay before retrying a drill that could not start, unless its next occurrence is sooner."""


def begin_due(now: datetime) -> int:
    """Start the due scheduled drills, each once even in concurrent calls; return how many."""
    due = DrillSchedule.objects.filter(next_at__lte=now).values_list("pk", flat=True)
    return process_each(
        list(due.order_by("next_at", "pk")), lambda pk: _begin_one(pk, now), "drills not begun"
    )


def _begin_one(schedule_id: int, now: datetime) -> int:
    with transaction.atomic():
        publication.lock()
        row = DrillSchedule.objects.filter(pk=schedule_id, next_at__lte=now).first()
        if row is None:  # Another tick was faster, or the schedule was removed.
            return 0
        switch = Switch.objects.select_for_update().get(pk=row.switch_id)
        try:
            with transaction.atomic():
                scope, _, key = row.switch_id.partition(":")
                job_key = f"drill:auto:{row.switch_id}:{timestamp(row.next_at)}"
                services.create_drill(scope, key, row.mode, row.reason, ACTOR, now, job_key=job_key)
        except Conflict as conflict:
            row.next_at = min(now + RETRY_AFTER, _next_round(row, now))
            row.save(update_fields=["next_at"])
            _record_missed(switch, row, conflict.detail, now)
            return 0
        row.next_at = _next_round(row, now)
        row.save(update_fields=["next_at"])
        return 1


def _next_round(row: DrillSchedule, now: datetime) -> datetime:
    """Return when the schedule's next drill starts: whole intervals after its creation.

    A late or repeated attempt doesn't shift later drills.
    """
    every = timedelta(days=row.every_days)
    return row.created_at + ((now - row.created_at) // every + 1) * every


def _record_missed(switch: Switch, row: DrillSchedule, why: str, now: datetime) -> None:
    entry = services.record_schedule_event("drill.missed", row, why, ACTOR, now)
    next_at = timestamp(row.next_at)
    outbox.announce(
        event="drill.missed",
        event_key=f"audit:{entry.pk}",
        scope=switch.scope,
        severity="warning",
        subject=f"drills:{switch.pk}",
        resource=switch.pk,
        facts=transitions.message_facts(
            switch, reason=row.reason, by=row.created_by, said=why, next_at=next_at
        ),
        now=now,
    )
