"""API resources of drills, marks and schedules."""

from datetime import datetime
from typing import Any

from controlplane.core.canonical import timestamp
from controlplane.core.jobs.models import JobStep
from switches.drills import transitions
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, DrillSchedule

SKIPPED = "skipped"


def drill_resource(drill: Drill) -> dict[str, Any]:
    """Return the resource of a drill that was fetched with its job and job steps."""
    job = drill.job
    return {
        "id": drill.pk,
        "switch": drill.switch_id,
        "mode": drill.mode,
        "scheduled": drill.scheduled,
        "state": job.state,
        "passed": drill.passed,
        "why": live_drills.failure_reason(drill),
        "steps": [_step(step) for step in sorted(job.steps.all(), key=lambda step: step.index)],
        "measured": transitions.measurements(drill),
        "reason": job.reason,
        "requested_by": job.created_by,
        "created_at": timestamp(job.created_at),
        "engaged_at": _moment(drill.engaged_at),
        "ends_by": _moment(drill.ends_by),
        "released_at": _moment(drill.released_at),
        "finished_at": _moment(job.finished_at),
    }


def mark_resource(mark: DrillMark, there: int) -> dict[str, Any]:
    """Return the resource of a mark; `there` is the number of present instances that match."""
    return {
        "pattern": mark.pattern,
        "instances": there,
        "created_at": timestamp(mark.created_at),
        "created_by": mark.created_by,
    }


def schedule_resource(row: DrillSchedule) -> dict[str, Any]:
    """Return the resource of a scheduled drill."""
    return {
        "switch": row.switch_id,
        "mode": row.mode,
        "every": f"{row.every_days}d",
        "next_at": timestamp(row.next_at),
        "reason": row.reason,
        "created_at": timestamp(row.created_at),
        "created_by": row.created_by,
    }


def step_state(step: JobStep) -> str:
    """Return the state of the job step, or `skipped` if it had nothing to do."""
    return SKIPPED if step.data.get(SKIPPED) else step.state


def _step(step: JobStep) -> dict[str, Any]:
    return {
        "name": step.name,
        "state": step_state(step),
        "attempts": step.attempts,
        "started_at": _moment(step.started_at),
        "finished_at": _moment(step.finished_at),
        "error": step.error,
    }


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None
