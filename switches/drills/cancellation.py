"""Cancellation of a drill job."""

from datetime import datetime

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.escalations import services as escalation
from controlplane.core.jobs import control, endings
from controlplane.core.jobs.models import Job
from switches.episodes import live_drills

from . import transitions


@transaction.atomic
def cancel(job: Job, reason: str, actor: Actor, now: datetime) -> None:
    """Release the drill and end its job as neither passed nor failed."""
    locked = transitions.lock_drill(job.pk)
    drill = locked.drill
    row = Job.objects.select_for_update().get(pk=job.pk)
    if not (row.is_live and drill.live):
        raise control.build_conflict(row, "be cancelled")
    before = row.state
    outcome = f"Cancelled by {actor.label}: {reason}"
    over = {"state": Job.State.CANCELLED, "finished_at": now, "next_at": None}
    control.take_over(row, now, **over, outcome=outcome)
    released = transitions.release(locked, now)
    drill.live, drill.measured = False, {live_drills.WHY: outcome, **drill.measured}
    drill.save(update_fields=["live", "measured"])
    escalation.close(subject=endings.get_subject(row), now=now)
    if released:
        version = drill.released_version
        transitions.record_audit(
            "drill.released", locked.switch, drill, actor, now, version=version
        )
    audit.record(
        actor=actor,
        action="job.cancelled",
        target=row.subject,
        reason=reason,
        before={"job": row.pk, "state": before},
        after={"job": row.pk, "kind": row.kind, "state": row.state, "step": row.step_index},
        now=now,
    )
