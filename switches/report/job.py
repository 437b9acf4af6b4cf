"""Job of the weekly reports: generate with retries, then send, those of teams first."""

import time
from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core.actors import system_actor
from controlplane.core.authority import read_teams
from controlplane.core.errors import NotFound
from controlplane.core.jobs import effects, kinds, stepwise
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.stepwise import StepContinues, StepKind, StepPassed
from controlplane.core.owned_resources import list_resources
from switches.models import TeamReport, WeeklyReport
from switches.report import services, weeks
from switches.report.compose import get_zone
from switches.report.services import KIND
from switches.report.weeks import Week

LOOK_AGAIN = timedelta(minutes=1)
MAX_ATTEMPTS = 12  # About an hour with pauses.
AT_ONCE = 5
TURN_SECONDS = 5.0
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


def _generate_for_teams(
    turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe
) -> StepPassed | StepContinues:
    """Generate the reports of the teams that own something, for a few seconds at a time."""
    week, actor = _get_week(turn.job), system_actor(services.BEAT)
    final = TeamReport.objects.filter(week=str(week), final=True)
    missing = sorted(_list_teams() - {*final.values_list("team", flat=True)})
    held: list[str] = []
    until = time.monotonic() + TURN_SECONDS
    for slug in missing:
        try:
            services.generate_report(week=week, team=slug, actor=actor, now=now, patiently=True)
        except services.UnreadSections as error:
            held.append(f"{slug} ({error})")
        except NotFound:
            continue  # The team was deleted meanwhile.
        probe("report.team_made")
        if time.monotonic() > until:
            return StepContinues(now)
    if held:
        return StepContinues(now + LOOK_AGAIN, holding=f"Parts can't be read yet: {held[0]}")
    return StepPassed()


def _send_for_teams(
    turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe
) -> StepPassed | StepContinues:
    """Send the reports of teams; those of teams without channels only appear on their pages."""
    week = _get_week(turn.job)
    if week != weeks.last_due(now, get_zone()):
        return StepPassed()
    unsent = TeamReport.objects.filter(week=str(week), final=True, sent_at=None)
    began = time.monotonic()
    for slug in unsent.order_by("team").values_list("team", flat=True):
        services.send_report(week=week, team=slug, actor=system_actor(services.BEAT), now=now)
        turn.heartbeat(now + timedelta(seconds=time.monotonic() - began))
        probe("report.team_notified")
    return StepPassed()


def _list_teams() -> set[str]:
    """Return the slugs of the teams that own something, or have teams below that do."""
    teams = read_teams()
    if not teams:
        return set()
    names = (one.name for one in list_resources())
    return {team.slug for name in names for team in teams.chain_of(name)}


def _get_week(job: Job) -> Week:
    return weeks.parse(job.subject.partition(":")[2])


STEPS = (
    StepKind("make", _generate, most_attempts=MAX_ATTEMPTS),
    StepKind("make_teams", _generate_for_teams, most_attempts=MAX_ATTEMPTS),
    StepKind("tell_teams", _send_for_teams, most_attempts=MAX_ATTEMPTS),
    # Last, because it waits while no route leads anywhere.
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
