"""Services that create, pause, resume and cancel jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.core import authority
from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.jobs import endings, kinds
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.sql import execute


@dataclass(frozen=True)
class PlannedStep:
    """A step of a job to be created; `data` is the input for the code that runs the step."""

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)


def create_job(
    *,
    kind: str,
    subject: str,
    steps: Sequence[PlannedStep],
    reason: str,
    actor: Actor,
    now: datetime,
    key: str | None = None,
    state: str = Job.State.RUNNING,
    next_at: datetime | None = None,
    total: int = 0,
) -> Job | None:
    """Create a job in the caller's transaction; return None if a job with this `key` exists.

    The job is due at `next_at`, by default immediately. A job with state `pending` is never due
    until it is started.
    """
    pending = state == Job.State.PENDING
    job = Job(
        kind=kind,
        key=key,
        subject=subject,
        state=state,
        next_at=None if pending else next_at or now,
        heartbeat_at=now,
        total=total or len(steps),
        reason=reason,
        created_by=actor.label,
        creator_id=actor.user_id,
        created_at=now,
        started_at=None if pending else now,
    )
    if key is not None:
        # A concurrent caller waits until this transaction ends.
        execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [key])
        if Job.objects.filter(key=key).exists():
            return None
    job.save(force_insert=True)
    JobStep.objects.bulk_create(
        JobStep(job=job, index=index, name=step.name, data=dict(step.data))
        for index, step in enumerate(steps)
    )
    return job


def get_job(job_id: int) -> Job:
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def intervene(*, job_id: int, verb: str, reason: str, actor: Actor, now: datetime) -> Job:
    """Pause, resume or cancel a job; its worker stops at its next write.

    Raises :class:`Conflict` if the job's state does not allow the action, :class:`Forbidden` if the
    actor may not do it, and :class:`InvalidInput` without a reason.
    """
    job = get_job(job_id)
    actor.require(kinds.get_scope(job))
    kind = kinds.get_kinds().get(job.kind)
    if not reason.strip():
        raise InvalidInput({"reason": ["Enter a reason."]})
    if kind and verb in kind.interventions:
        authority.require(actor, *kinds.get_action(job, verb))
        kind.interventions[verb](job, reason.strip(), actor, now)
        return get_job(job_id)
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=job_id)
        authority.require(actor, *kinds.get_action(job, verb))
        INTERVENTIONS[verb](job, reason.strip(), actor, now)
        return job


def take_over(job: Job, now: datetime, **fields: Any) -> None:
    """Give a locked job new `fields` and a new fence, so that its current worker can't write."""
    for name, value in {**fields, "fence": job.fence + 1, "lease_until": None}.items():
        setattr(job, name, value)
    job.save(update_fields=[*fields, "fence", "lease_until"])


def build_conflict(job: Job, verb: str) -> Conflict:
    return Conflict(f"This is {job.state}; it can't {verb} now.", state=job.state)


def _pause_job(job: Job, reason: str, actor: Actor, now: datetime) -> None:
    if job.state not in {Job.State.RUNNING, Job.State.HOLDING}:
        raise build_conflict(job, "pause")
    before = job.state
    # A paused job needs no worker, so an escalation about it being stuck is over.
    take_over(job, now, state=Job.State.PAUSED, paused_at=now, next_at=None, stuck_at=None)
    endings.close_escalation(job, now)
    endings.record_audit(job, "job.paused", now, reason, actor=actor, before=before)


def _resume_job(job: Job, reason: str, actor: Actor, now: datetime) -> None:
    if job.state != Job.State.PAUSED:
        raise build_conflict(job, "resume")
    take_over(job, now, state=Job.State.RUNNING, paused_at=None, next_at=now, heartbeat_at=now)
    endings.record_audit(job, "job.resumed", now, reason, actor=actor, before=Job.State.PAUSED)


def _cancel_job(job: Job, reason: str, actor: Actor, now: datetime) -> None:
    if not job.is_live:
        raise build_conflict(job, "be cancelled")
    before = job.state
    outcome = f"Cancelled by {actor.label}: {reason}"
    take_over(job, now, state=Job.State.CANCELLED, finished_at=now, next_at=None, outcome=outcome)
    endings.close_escalation(job, now)
    endings.record_audit(job, "job.cancelled", now, reason, actor=actor, before=before)


INTERVENTIONS: Mapping[str, kinds.Intervention] = {
    "pause": _pause_job,
    "resume": _resume_job,
    "cancel": _cancel_job,
}
