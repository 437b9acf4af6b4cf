"""The JSON of a job in API responses."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rest_framework import serializers

from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.jobs import kinds, stuck_jobs
from controlplane.core.jobs.models import Job, JobStep


class ProgressShape(Resource[Any]):
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    rate_per_second = serializers.FloatField(allow_null=True)


class JobStepShape(Resource[JobStep]):
    name = serializers.CharField()
    state = serializers.ChoiceField(JobStep.State.values)
    attempts = serializers.IntegerField()
    started_at = TimestampField(allow_null=True)
    finished_at = TimestampField(allow_null=True)
    error = serializers.CharField()


class JobResultShape(Resource[kinds.JobResult]):
    text = serializers.CharField(help_text="Result in numbers: `20 sent, 20 failed again`.")
    word = serializers.CharField(help_text="Shown instead of `completed`: `All failed again`.")
    severity = serializers.ChoiceField(["critical", "warning", "info"], source="icon")


class JobShape(Resource[Any]):
    id = serializers.IntegerField()
    kind = serializers.CharField()
    title = serializers.CharField()
    subject = serializers.CharField(help_text="Object that the job works on: `segment:finance`.")
    state = serializers.ChoiceField(Job.State.values)
    step_index = serializers.IntegerField()
    progress = ProgressShape(source="*")
    checkpoint = serializers.JSONField(
        help_text="Position at which the current step resumes, or null; the format is the kind's."
    )
    attempts = serializers.IntegerField()
    heartbeat_at = TimestampField(allow_null=True)
    stuck = serializers.BooleanField(
        help_text="True if the job is due and sent no heartbeat for five minutes."
    )
    hold_reason = serializers.CharField()
    error = serializers.CharField()
    outcome = serializers.CharField()
    result = JobResultShape(
        allow_null=True, help_text="Result so far, if the state alone would claim too much."
    )
    reason = serializers.CharField()
    created_by = serializers.CharField()
    created_at = TimestampField()
    started_at = TimestampField(allow_null=True)
    paused_at = TimestampField(allow_null=True)
    finished_at = TimestampField(allow_null=True)
    compensated_at = TimestampField(allow_null=True)
    compensation_failed_at = TimestampField(allow_null=True)
    steps = JobStepShape(many=True)
    path = serializers.CharField(help_text="Path of the job's page in the console.")


def job_resource(job: Job, now: datetime) -> dict[str, Any]:
    """Return the API resource of a job at `now`."""
    return JobShape.render(describe_job(job, kinds.load_results([job]).get(job.pk), now))


def describe_job(job: Job, result: kinds.JobResult | None, now: datetime) -> Mapping[str, Any]:
    """Return the values that :class:`JobShape` renders: the job's columns and computed ones.

    No query runs if `steps` were prefetched.
    """
    rate = measure_rate(job, now)
    return {
        **vars(job),
        "title": kinds.get_title(job),
        "result": result,
        "rate_per_second": None if rate is None else round(rate, 3),
        "stuck": stuck_jobs.is_stuck(job, now),
        "steps": sorted(job.steps.all(), key=lambda step: step.index),
        "path": kinds.get_path(job),
    }


def measure_rate(job: Job, now: datetime) -> float | None:
    """Return a job's average items per second until its end or last checkpoint, None if unknown."""
    if job.started_at is None or not job.done:
        return None
    seconds = ((job.finished_at or job.checkpoint_at or now) - job.started_at).total_seconds()
    return job.done / seconds if seconds > 0 else None
