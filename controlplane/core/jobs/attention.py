"""Attention items for stuck jobs, failed compensations and forgotten paused jobs."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from controlplane.core.durations import format_readable
from controlplane.core.jobs import endings, kinds, stuck_jobs
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import AttentionItem, attention_source

FORGOTTEN = timedelta(days=1)
MAX_ITEMS = 100


FAILED_COMPENSATIONS = Job.objects.filter(
    state=Job.State.FAILED, compensation_failed_at__isnull=False
)
PAUSED = Job.objects.filter(state=Job.State.PAUSED, finished_at=None)


def _filter_stuck(now: datetime) -> QuerySet[Job]:
    return stuck_jobs.filter_stuck_jobs(Job.objects.all(), now)


@attention_source(5, only_if=lambda _now: FAILED_COMPENSATIONS.all())
def list_failed_compensations(now: datetime) -> Sequence[AttentionItem]:
    """Return attention items for failed jobs whose compensation has failed as well."""
    # `next_at` is always set, as compensation is retried; the condition uses the index `job_due`.
    rows = FAILED_COMPENSATIONS.filter(next_at__isnull=False, compensated_at=None)
    return [
        AttentionItem(
            kind="job_not_compensated",
            severity="critical",
            title=f"{_name_job(job)} failed, and what it did could not be taken back",
            detail=f"{job.subject}: {job.error} It is tried again all the time.",
            path=kinds.get_path(job),
            since=job.compensation_failed_at or now,
        )
        for job in rows.order_by("compensation_failed_at")[:MAX_ITEMS]
    ]


@attention_source(6, only_if=_filter_stuck)
def list_stuck_jobs(now: datetime) -> Sequence[AttentionItem]:
    """Return attention items for stuck jobs: critical until their escalation is acknowledged."""
    rows = list(_filter_stuck(now).order_by("heartbeat_at")[:MAX_ITEMS])
    acknowledged = _find_acknowledgments(rows)
    return [
        AttentionItem(
            kind="job_stuck",
            severity="warning" if job.pk in acknowledged else "critical",
            title=f"{_name_job(job)} is stuck",
            detail=f"{job.subject}: no sign of life for "
            f"{format_readable(now - (job.heartbeat_at or job.created_at))}."
            + (f" Acknowledged by {acknowledged[job.pk]}." if job.pk in acknowledged else ""),
            path=kinds.get_path(job),
            since=job.heartbeat_at or job.created_at,
        )
        for job in rows
    ]


@attention_source(40, only_if=lambda _now: PAUSED.all())
def list_forgotten_jobs(now: datetime) -> Sequence[AttentionItem]:
    rows = PAUSED.filter(paused_at__lt=now - FORGOTTEN)
    return [
        AttentionItem(
            kind="job_paused",
            severity="warning",
            title=f"{_name_job(job)} is paused",
            detail=f"{job.subject}, for {format_readable(now - (job.paused_at or now))}. "
            "Resume it, or cancel it.",
            path=kinds.get_path(job),
            since=job.paused_at or now,
        )
        for job in rows.order_by("paused_at")[:MAX_ITEMS]
    ]


def _find_acknowledgments(jobs: Iterable[Job]) -> dict[int, str]:
    """Return a mapping of job id to the person (a label) who acknowledged its escalation."""
    by_subject = {endings.get_subject(job): job.pk for job in jobs}
    rows = Escalation.objects.filter(
        subject__in=by_subject, closed_at=None, acknowledged_at__isnull=False
    )
    return {by_subject[one.subject]: one.acknowledged_by for one in rows}


def _name_job(job: Job) -> str:
    return f"{kinds.get_title(job)} {job.pk}"
