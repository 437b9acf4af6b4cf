"""Periodic tasks (ticks) of core, and the Celery tasks that run ticks by name."""

from datetime import datetime

from celery import shared_task

from controlplane.core.approvals import reviews
from controlplane.core.approvals import services as approvals
from controlplane.core.jobs import alarms as job_alarms
from controlplane.core.jobs import engine as jobs
from controlplane.core.jobs import stuck_jobs

from . import retention, ticks
from .audit import services as audit
from .fleet import alarms as fleet_alarms
from .fleet.retention_rules import DATA_PLANES
from .gates.retention_rules import EVENTS, VERDICTS
from .idempotency.retention_rules import IDEMPOTENCY_KEYS
from .instances.retention_rules import ACKNOWLEDGEMENTS, CHECK_COUNTS, INSTANCES
from .jobs.retention_rules import build_rules
from .trip_requests.retention_rules import TRIP_REQUESTS

RAN_BY = "worker"
MAX_AT_ONCE = 5000
MAX_EVENTS_AT_ONCE = 500_000


@shared_task(name="core.run_ticks", ignore_result=True)
def run_ticks(names: list[str]) -> None:
    """Run the named ticks, one after another; repeating this is safe."""
    for name in names:
        ticks.run(name, RAN_BY)


@shared_task(name="core.run_tick", ignore_result=True)
def run_tick(name: str) -> None:
    """Run one tick; only for messages that an earlier release, still running, puts in the queue."""
    ticks.run(name, RAN_BY)


ticks.tick("approvals.expire", seconds=60, queue="switches")(approvals.expire_due_requests)
ticks.tick("reviews.reopen", seconds=300, queue="switches")(reviews.reopen_due_reviews)
ticks.tick(audit.TICK, seconds=60, queue="housekeeping")(audit.verify_next_rows)
ticks.tick(stuck_jobs.TICK, seconds=15, queue="housekeeping")(stuck_jobs.check_stuck_jobs)
ticks.tick(fleet_alarms.TICK, seconds=15, queue="housekeeping")(fleet_alarms.check_fleet)
ticks.tick("jobs.alarms", seconds=60, queue="housekeeping")(job_alarms.update_alarms)


@ticks.tick("idempotency.purge", seconds=600, queue="housekeeping")
def purge_idempotency_keys(now: datetime) -> int:
    return retention.purge([IDEMPOTENCY_KEYS], now)


@ticks.tick("gates.purge", seconds=60, queue="housekeeping")
def purge_gates(now: datetime) -> int:
    """Delete old data of ramp gates: event counts, and verdicts of external services."""
    return retention.purge([EVENTS, VERDICTS], now, most=MAX_EVENTS_AT_ONCE)


@ticks.tick("instances.purge", seconds=60, queue="housekeeping")
def purge_instances(now: datetime) -> int:
    """Delete old instances, acknowledgements, check counts and data planes."""
    purged = retention.purge([INSTANCES, ACKNOWLEDGEMENTS, DATA_PLANES], now, most=MAX_AT_ONCE)
    return purged + retention.purge(CHECK_COUNTS, now, most=MAX_EVENTS_AT_ONCE)


@ticks.tick("jobs.purge", seconds=3600, queue="housekeeping")
def purge_jobs(now: datetime) -> int:
    return retention.purge(build_rules(), now, most=MAX_AT_ONCE)


@ticks.tick("trip_requests.purge", seconds=3600, queue="housekeeping")
def purge_trip_requests(now: datetime) -> int:
    return retention.purge([TRIP_REQUESTS], now, most=MAX_AT_ONCE)


@ticks.tick(
    "jobs.turn", seconds=1, queue="jobs", pending=lambda now: [jobs.find_due_jobs("jobs.turn", now)]
)
def run_jobs(now: datetime) -> int:
    return jobs.run_tick("jobs.turn", now)
