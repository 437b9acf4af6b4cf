"""The representation of jobs."""

from datetime import datetime
from typing import Any

from controlplane.core.canonical import timestamp
from controlplane.core.jobs import kinds, watch
from controlplane.core.jobs.models import Job, JobStep


def job_resource(job: Job, now: datetime) -> dict[str, Any]:
    """Return a job with its steps; without a query if they were fetched."""
    kind = kinds.get_kinds().get(job.kind)
    return {
        "id": job.pk,
        "kind": job.kind,
        "title": kind.title if kind else job.kind,
        "subject": job.subject,
        "state": job.state,
        "step_index": job.step_index,
        "progress": {
            "done": job.done,
            "total": job.total,
            "rate_per_second": _rate(job, now),
        },
        "checkpoint": job.checkpoint,
        "attempts": job.attempts,
        "heartbeat_at": _time(job.heartbeat_at),
        "stuck": watch.is_stuck(job, now),
        "hold_reason": job.hold_reason,
        "error": job.error,
        "outcome": job.outcome,
        "reason": job.reason,
        "created_by": job.created_by,
        "created_at": timestamp(job.created_at),
        "started_at": _time(job.started_at),
        "paused_at": _time(job.paused_at),
        "finished_at": _time(job.finished_at),
        "compensated_at": _time(job.compensated_at),
        "compensation_failed_at": _time(job.compensation_failed_at),
        "steps": [_step(step) for step in list_steps(job)],
        "path": kind.path(job) if kind else "/jobs/",
    }


def list_steps(job: Job) -> list[JobStep]:
    """Return the steps in order; without a query if they were fetched."""
    return sorted(job.steps.all(), key=lambda step: step.index)


def _step(step: JobStep) -> dict[str, Any]:
    return {
        "name": step.name,
        "state": step.state,
        "attempts": step.attempts,
        "started_at": _time(step.started_at),
        "finished_at": _time(step.finished_at),
        "error": step.error,
    }


def _rate(job: Job, now: datetime) -> float | None:
    """Return items per second since the start, until the end or the last count; None if unknown."""
    if job.started_at is None or not job.done:
        return None
    until = job.finished_at or job.checkpoint_at or now
    seconds = (until - job.started_at).total_seconds()
    return round(job.done / seconds, 3) if seconds > 0 else None


def _time(at: datetime | None) -> str | None:
    return timestamp(at) if at else None
