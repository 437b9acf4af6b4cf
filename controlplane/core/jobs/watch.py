"""Stuck jobs: those without a sign of life, as opposed to slow ones."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce

from controlplane.core.canonical import timestamp
from controlplane.core.escalations import services as escalation
from controlplane.core.jobs import endings
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.process_models import Tick

SILENT = timedelta(minutes=5)
TO_BE_TAKEN_UP = timedelta(seconds=30)
"""Time that a job may be due before it counts as not picked up."""
ENDED_LATELY = timedelta(hours=1)
AWAY = timedelta(minutes=1)
TO_BE_TAKEN_BACK = Q(state=Job.State.FAILED, next_at__isnull=False)
MAX_AT_ONCE = 200
MAX_CALLED = 10
TICK = "jobs.watch"


def filter_stuck_jobs(jobs: QuerySet[Job], now: datetime) -> QuerySet[Job]:
    """Return jobs that should run or be taken back but showed no life for five minutes.

    Jobs that wait for their time are not among them, nor those whose last sign of life is in the
    future because the clock was set back.
    """
    at_work = Q(state__in=[Job.State.RUNNING, Job.State.HOLDING], finished_at=None)
    watched = Q(state=Job.State.PAUSED, next_at__isnull=False, finished_at=None)
    return jobs.alias(alive_at=Coalesce("heartbeat_at", "created_at")).filter(
        at_work | watched | TO_BE_TAKEN_BACK,
        Q(next_at=None) | Q(next_at__lt=now - TO_BE_TAKEN_UP),
        alive_at__lt=now - SILENT,
    )


def is_stuck(job: Job, now: datetime) -> bool:
    """Return whether a job is stuck, by the rules of :func:`filter_stuck_jobs`."""
    watched = job.state in {Job.State.RUNNING, Job.State.HOLDING} or (
        job.state in {Job.State.PAUSED, Job.State.FAILED} and job.next_at is not None
    )
    due = job.next_at is None or job.next_at < now - TO_BE_TAKEN_UP
    return watched and due and (job.heartbeat_at or job.created_at) < now - SILENT


def run_watch(now: datetime) -> int:
    """Notify about stuck jobs, unless the watch itself did not run for `AWAY`.

    After an outage of everything, jobs are silent until their workers have had a first tick.
    """
    last = Tick.objects.filter(name=TICK).values_list("ran_at", flat=True).first()
    if last is None or now - last > AWAY:
        return 0
    return call_about_stuck_jobs(now)


def call_about_stuck_jobs(now: datetime) -> int:
    """Call people about stuck jobs and announce recovered ones; return their number.

    People are called about ten jobs at a time; the page shows the others.
    """
    open_calls = Escalation.objects.filter(closed_at=None, event=endings.STUCK)
    called = set(open_calls.values_list("subject", flat=True))
    other = Escalation.objects.filter(closed_at=None, event=endings.NOT_COMPENSATED)
    known = set(other.values_list("subject", flat=True))
    told = 0
    unmarked_first = F("stuck_at").asc(nulls_first=True)
    silent = filter_stuck_jobs(Job.objects.all(), now).order_by(
        unmarked_first, "heartbeat_at", "pk"
    )
    for job in silent.only("pk", "stuck_at")[:MAX_AT_ONCE]:
        room = len(called) < MAX_CALLED and endings.get_subject(job) not in called | known
        if (job.stuck_at is None or room) and _mark_stuck(job.pk, room, now):
            told += 1
            called |= {endings.get_subject(job)} if room else set()
    marked = Job.objects.filter(
        Q(finished_at=None)
        | Q(finished_at__gte=now - ENDED_LATELY)
        | Q(compensated_at__gte=now - ENDED_LATELY)
        | TO_BE_TAKEN_BACK,
        stuck_at__isnull=False,
    )
    pks = list(marked.values_list("pk", flat=True)[:MAX_AT_ONCE])
    return told + sum(_clear_stuck(pk, now) for pk in pks)


@transaction.atomic
def _mark_stuck(pk: int, room: bool, now: datetime) -> bool:
    """Mark a stuck job. One that is being written is left to the next look."""
    job = Job.objects.select_for_update(skip_locked=True).filter(pk=pk).first()
    if job is None or not is_stuck(job, now):
        return False
    since, is_new = timestamp(job.heartbeat_at or job.created_at), job.stuck_at is None
    if room:
        endings.call_person(job, endings.STUCK, now, silent_since_at=since, worker=job.worker)
    if is_new:
        job.stuck_at = now
        job.save(update_fields=["stuck_at"])
        endings.record_audit(job, endings.STUCK, now, reason=f"No sign of life since {since}.")
    return True


@transaction.atomic
def _clear_stuck(pk: int, now: datetime) -> bool:
    job = Job.objects.select_for_update(skip_locked=True).filter(pk=pk).first()
    if job is None or job.stuck_at is None or is_stuck(job, now):
        return False
    since, job.stuck_at = job.stuck_at, None
    job.save(update_fields=["stuck_at"])
    called = endings.is_called(job, endings.STUCK)
    if called:
        escalation.close(subject=endings.get_subject(job), now=now)
    if called or job.state == Job.State.COMPLETED:  # Its end has closed the call before us.
        endings.announce(job, endings.RECOVERED, "info", now, since_at=timestamp(since))
    if job.state != Job.State.CANCELLED:
        endings.record_audit(job, endings.RECOVERED, now)
    return True
