"""Jobs that wait for a person because they can't go on by themselves."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from controlplane.core.durations import readable
from controlplane.core.jobs import endings, kinds, watch
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import AttentionItem, attention_source

FORGOTTEN = timedelta(days=1)
MAX_ITEMS = 100


def _failed_compensations(_now: datetime) -> QuerySet[Job]:
    return Job.objects.filter(state=Job.State.FAILED, compensation_failed_at__isnull=False)


def _stuck_jobs(now: datetime) -> QuerySet[Job]:
    return watch.filter_stuck_jobs(Job.objects.all(), now)


def _paused_jobs(_now: datetime) -> QuerySet[Job]:
    return Job.objects.filter(state=Job.State.PAUSED, finished_at=None)


@attention_source(5, only_if=_failed_compensations)
def list_failed_compensations(now: datetime) -> Sequence[AttentionItem]:
    """Return failed jobs whose effects could not be taken back: always critical."""
    rows = Job.objects.filter(
        next_at__isnull=False,  # As it is tried again. There is an index of what is due.
        state=Job.State.FAILED,
        compensation_failed_at__isnull=False,
        compensated_at=None,
    )
    return [
        AttentionItem(
            kind="job_not_compensated",
            severity="critical",
            title=f"{_named(job)} failed, and what it did could not be taken back",
            detail=f"{job.subject}: {job.error} It is tried again all the time.",
            path=_path(job),
            since=job.compensation_failed_at or now,
        )
        for job in rows.order_by("compensation_failed_at")[:MAX_ITEMS]
    ]


@attention_source(6, only_if=_stuck_jobs)
def list_stuck_jobs(now: datetime) -> Sequence[AttentionItem]:
    """Return jobs that no worker touches: critical until somebody acknowledges them."""
    rows = list(
        watch.filter_stuck_jobs(Job.objects.all(), now).order_by("heartbeat_at")[:MAX_ITEMS]
    )
    known = _acknowledged(rows)
    return [
        AttentionItem(
            kind="job_stuck",
            severity="warning" if job.pk in known else "critical",
            title=f"{_named(job)} is stuck",
            detail=_detail(job, known.get(job.pk), now),
            path=_path(job),
            since=job.heartbeat_at or job.created_at,
        )
        for job in rows
    ]


@attention_source(40, only_if=_paused_jobs)
def list_forgotten_jobs(now: datetime) -> Sequence[AttentionItem]:
    """Return jobs that were paused more than a day ago."""
    rows = Job.objects.filter(
        state=Job.State.PAUSED, finished_at=None, paused_at__lt=now - FORGOTTEN
    )
    return [
        AttentionItem(
            kind="job_paused",
            severity="warning",
            title=f"{_named(job)} is paused",
            detail=f"{job.subject}, for {readable(now - (job.paused_at or now))}. "
            "Resume it, or cancel it.",
            path=_path(job),
            since=job.paused_at or now,
        )
        for job in rows.order_by("paused_at")[:MAX_ITEMS]
    ]


def _detail(job: Job, known_by: str | None, now: datetime) -> str:
    silent = readable(now - (job.heartbeat_at or job.created_at))
    said = f"{job.subject}: no sign of life for {silent}."
    return f"{said} Acknowledged by {known_by}." if known_by else said


def _acknowledged(jobs: Iterable[Job]) -> dict[int, str]:
    """Return who acknowledged, by job, where somebody has."""
    by_subject = {endings.get_subject(job): job.pk for job in jobs}
    rows = Escalation.objects.filter(
        subject__in=by_subject, closed_at=None, acknowledged_at__isnull=False
    )
    return {by_subject[one.subject]: one.acknowledged_by for one in rows}


def _named(job: Job) -> str:
    kind = kinds.get_kinds().get(job.kind)
    return f"{kind.title if kind else job.kind} {job.pk}"


def _path(job: Job) -> str:
    kind = kinds.get_kinds().get(job.kind)
    return kind.path(job) if kind else "/jobs/"
