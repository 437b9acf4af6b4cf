"""Job of the weekly report: generate with retries, then send."""

from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core.actors import system_actor
from controlplane.core.jobs import effects, kinds, stepwise
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.stepwise import StepContinues, StepKind, StepPassed
from switches.models import WeeklyReport
from switches.report import services, weeks
from switches.report.compose import get_zone
from switches.report.services import KIND
from switches.report.weeks import Week

LOOK_AGAIN = timedelta(minutes=1)
MAX_ATTEMPTS = 12  # About an hour with pauses.
AT_ONCE = 5
RETENTION_DAYS = 90
NOWHERE = "No route reaches anyone. The report is sent as soon as one does."


def _generate(
    turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe
) -> StepPassed | StepContinues:
    """Generate the report unless a complete final one exists."""
    week = _get_week(turn.job)
    actor = system_actor(services.BEAT)
    try:
        report = services.generate_report(week=week, actor=actor, now=now, patiently=True)
    except services.UnreadSections as error:
        return StepContinues(now + LOOK_AGAIN, holding=f"Parts of it can't be read yet: {error}")
    probe("report.made")
    return StepPassed({"anchor": report.anchor_id})


def _send(
    turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe
) -> StepPassed | StepContinues:
    week = _get_week(turn.job)
    if week != weeks.last_due(now, get_zone()):
        return StepPassed({"told": False})
    with transaction.atomic():
        sent = services.send_report(week=week, actor=system_actor(services.BEAT), now=now)
        if sent:
            effects.record_effect(turn.job, "tell", now=now)
        probe("report.notified")
    probe("report.notified.committed")
    if WeeklyReport.objects.filter(week=str(week), sent_at=None).exists():
        return StepContinues(now + LOOK_AGAIN, holding=NOWHERE)
    return StepPassed({"told": True})


def _get_week(job: Job) -> Week:
    return weeks.parse(job.subject.partition(":")[2])


STEPS = (
    StepKind("make", _generate, most_attempts=MAX_ATTEMPTS),
    StepKind("tell", _send, most_attempts=MAX_ATTEMPTS),
)

kinds.register(
    kinds.JobKind(
        name=KIND,
        title="Weekly report",
        tick="jobs.turn",
        work=stepwise.build_worker(STEPS),
        path=lambda job: f"/reports/weekly/{_get_week(job)}/",
        most=AT_ONCE,
        kept_days=RETENTION_DAYS,
    )
)
