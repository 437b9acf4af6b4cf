"""Detection of stuck jobs: due jobs without a heartbeat for five minutes."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce

from controlplane.core.canonical import timestamp
from controlplane.core.jobs import endings
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.process_models import Tick

SILENT = timedelta(minutes=5)
TO_BE_TAKEN_UP = timedelta(seconds=30)
"""Time that a job may be overdue before it counts as not picked up."""
ENDED_LATELY = timedelta(hours=1)
AWAY = timedelta(minutes=1)
TO_BE_TAKEN_BACK = Q(state=Job.State.FAILED, next_at__isnull=False)
MAX_AT_ONCE = 200
MAX_ESCALATED = 10
TICK = "jobs.watch"


def filter_stuck_jobs(jobs: QuerySet[Job], now: datetime) -> QuerySet[Job]:
    """Return the stuck jobs: those due to run or be compensated, without heartbeat for 5 minutes.

    A job with a heartbeat in the future is not stuck: the clock was set back.
    """
    at_work = Q(state__in=[Job.State.RUNNING, Job.State.HOLDING], finished_at=None)
    watched = Q(state=Job.State.PAUSED, next_at__isnull=False, finished_at=None)
    return jobs.alias(alive_at=Coalesce("heartbeat_at", "created_at")).filter(
        at_work | watched | TO_BE_TAKEN_BACK,
        Q(next_at=None) | Q(next_at__lt=now - TO_BE_TAKEN_UP),
        alive_at__lt=now - SILENT,
    )


def is_stuck(job: Job, now: datetime) -> bool:
    """Return True if a job is stuck, by the conditions of :func:`filter_stuck_jobs`."""
    watched = job.state in {Job.State.RUNNING, Job.State.HOLDING} or (
        job.state in {Job.State.PAUSED, Job.State.FAILED} and job.next_at is not None
    )
    due = job.next_at is None or job.next_at < now - TO_BE_TAKEN_UP
    return watched and due and (job.heartbeat_at or job.created_at) < now - SILENT


def check_stuck_jobs(now: datetime) -> int:
    """Escalate stuck jobs, unless this periodic check last ran over a minute ago.

    In that case the whole system was down: all jobs look stuck until their workers have run.
    """
    last = Tick.objects.filter(name=TICK).values_list("ran_at", flat=True).first()
    if last is None or now - last > AWAY:
        return 0
    return escalate_stuck_jobs(now)


def escalate_stuck_jobs(now: datetime) -> int:
    """Escalate stuck jobs and announce recovered ones; return the number of jobs changed.

    At most `MAX_ESCALATED` escalations are open at once; the jobs page lists the rest.
    """
    open_calls = Escalation.objects.filter(closed_at=None, event=endings.STUCK)
    escalated = set(open_calls.values_list("subject", flat=True))
    other = Escalation.objects.filter(closed_at=None, event=endings.NOT_COMPENSATED)
    uncompensated = set(other.values_list("subject", flat=True))
    changed = 0
    unmarked_first = F("stuck_at").asc(nulls_first=True)
    silent = filter_stuck_jobs(Job.objects.all(), now).order_by(
        unmarked_first, "heartbeat_at", "pk"
    )
    for job in silent.only("pk", "stuck_at")[:MAX_AT_ONCE]:
        subject = endings.get_subject(job)
        escalates = len(escalated) < MAX_ESCALATED and subject not in escalated | uncompensated
        if (job.stuck_at is None or escalates) and _mark_stuck(job.pk, escalates, now):
            changed += 1
            escalated |= {subject} if escalates else set()
    marked = Job.objects.filter(
        Q(finished_at=None)
        | Q(finished_at__gte=now - ENDED_LATELY)
        | Q(compensated_at__gte=now - ENDED_LATELY)
        | TO_BE_TAKEN_BACK,
        stuck_at__isnull=False,
    )
    pks = list(marked.values_list("pk", flat=True)[:MAX_AT_ONCE])
    return changed + sum(_clear_stuck(pk, now) for pk in pks)


@transaction.atomic
def _mark_stuck(pk: int, escalates: bool, now: datetime) -> bool:
    """Mark a job as stuck; also escalate it if `escalates`. Return False if nothing was done.

    Nothing is done if the job is locked or no longer stuck.
    """
    job = Job.objects.select_for_update(skip_locked=True).filter(pk=pk).first()
    if job is None or not is_stuck(job, now):
        return False
    since, is_new = timestamp(job.heartbeat_at or job.created_at), job.stuck_at is None
    if escalates:
        endings.escalate(job, endings.STUCK, now, silent_since_at=since, worker=job.worker)
    if is_new:
        job.stuck_at = now
        job.save(update_fields=["stuck_at"])
        endings.record_audit(job, endings.STUCK, now, reason=f"No heartbeat since {since}.")
    return True


@transaction.atomic
def _clear_stuck(pk: int, now: datetime) -> bool:
    job = Job.objects.select_for_update(skip_locked=True).filter(pk=pk).first()
    if job is None or job.stuck_at is None or is_stuck(job, now):
        return False
    since, job.stuck_at = job.stuck_at, None
    job.save(update_fields=["stuck_at"])
    called = endings.is_escalated(job, endings.STUCK)
    if called:
        endings.close_escalation(job, now)
    if called or job.state == Job.State.COMPLETED:  # Its end closed the escalation.
        endings.announce(job, endings.RECOVERED, "info", now, since_at=timestamp(since))
    if job.state != Job.State.CANCELLED:
        endings.record_audit(job, endings.RECOVERED, now)
    return True
