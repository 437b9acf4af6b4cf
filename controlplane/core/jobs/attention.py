"""Attention items for stuck jobs, failed compensations and forgotten paused jobs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast, Concat

from controlplane.core.durations import format_readable
from controlplane.core.jobs import endings, kinds, stuck_jobs
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import AttentionAction, AttentionItem, attention_rows

FORGOTTEN = timedelta(days=1)
MAX_ITEMS = 100


def _find_failed_compensations(_now: datetime) -> QuerySet[Job]:
    # `next_at` is always set, as compensation is retried; the condition uses the index `job_due`.
    rows = Job.objects.filter(
        state=Job.State.FAILED,
        compensation_failed_at__isnull=False,
        next_at__isnull=False,
        compensated_at=None,
    )
    return rows.order_by("compensation_failed_at")[:MAX_ITEMS]


def _find_stuck(now: datetime) -> QuerySet[Job]:
    rows = stuck_jobs.filter_stuck_jobs(Job.objects.all(), now)
    escalations = Escalation.objects.filter(
        subject=Concat(Value("job:"), Cast(OuterRef("pk"), TextField())),
        closed_at=None,
        acknowledged_at__isnull=False,
    )
    known_to = Subquery(escalations.values("acknowledged_by")[:1])
    return rows.annotate(known_to=known_to).order_by("heartbeat_at")[:MAX_ITEMS]


def _find_forgotten(now: datetime) -> QuerySet[Job]:
    rows = Job.objects.filter(
        state=Job.State.PAUSED, finished_at=None, paused_at__lt=now - FORGOTTEN
    )
    return rows.order_by("paused_at")[:MAX_ITEMS]


@attention_rows(5, _find_failed_compensations)
def list_failed_compensations(now: datetime, found: Sequence[Job]) -> Sequence[AttentionItem]:
    """Return attention items for failed jobs whose compensation has failed as well."""
    return [
        AttentionItem(
            kind="job_not_compensated",
            severity="critical",
            title=f"{_name_job(job)} failed and could not be rolled back",
            detail=f"{job.subject}: {job.error} The rollback is retried automatically.",
            path=kinds.get_path(job),
            since=job.compensation_failed_at or now,
            subjects=(endings.get_subject(job),),
            resource=kinds.get_resource(job),
        )
        for job in found
    ]


@attention_rows(6, _find_stuck)
def list_stuck_jobs(now: datetime, found: Sequence[Any]) -> Sequence[AttentionItem]:
    """Return attention items for stuck jobs: critical until their escalation is acknowledged."""
    return [
        AttentionItem(
            kind="job_stuck",
            severity="warning" if job.known_to else "critical",
            title=f"{_name_job(job)} is stuck",
            detail=f"{job.subject}: no heartbeat for "
            f"{format_readable(now - (job.heartbeat_at or job.created_at))}."
            + (f" Acknowledged by {job.known_to}." if job.known_to else ""),
            path=kinds.get_path(job),
            since=job.heartbeat_at or job.created_at,
            subjects=(endings.get_subject(job),),
            resource=kinds.get_resource(job),
        )
        for job in found
    ]


@attention_rows(40, _find_forgotten)
def list_forgotten_jobs(now: datetime, found: Sequence[Job]) -> Sequence[AttentionItem]:
    return [
        AttentionItem(
            kind="job_paused",
            severity="warning",
            title=f"{_name_job(job)} is paused",
            detail=f"{job.subject}, for {format_readable(now - (job.paused_at or now))}. "
            "Resume it or cancel it.",
            path=kinds.get_path(job),
            since=job.paused_at or now,
            actions=(
                _build_action(job, "resume", "ramping"),
                _build_action(job, "cancel", "close"),
            ),
            subjects=(endings.get_subject(job),),
            resource=kinds.get_resource(job),
        )
        for job in found
    ]


def _build_action(job: Job, verb: str, icon: str) -> AttentionAction:
    action, _ = kinds.get_action(job, verb)
    return AttentionAction(
        f"{verb.capitalize()}…",
        f"/jobs/{job.pk}/{verb}/",
        kinds.get_scope(job),
        icon,
        authority=action,
    )


def _name_job(job: Job) -> str:
    return f"{kinds.get_title(job)} {job.pk}"
