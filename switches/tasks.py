"""Periodic tasks (ticks) of switches."""

from datetime import datetime
from functools import partial

from controlplane.core import retention, ticks
from controlplane.core.jobs import engine
from controlplane.core.trip_requests import services as trip_requests
from switches.drills import schedules as drills
from switches.emergency import reconciliation as emergency
from switches.lost_versions import reconciliation as lost_versions
from switches.ramps.job import TICK as RAMPS
from switches.report import services as report
from switches.services.expire import past_expiry
from switches.trips import history
from switches.trips import resolution as trips
from switches.trips import services as trip_services

from . import retention_rules, services


@ticks.tick("trips.purge", seconds=24 * 3600, queue="housekeeping")
def purge_trips(now: datetime) -> int:
    return retention.purge([retention_rules.TRIPS], now)


@ticks.tick("emergency.purge", seconds=24 * 3600, queue="housekeeping")
def purge_emergency_orders(now: datetime) -> int:
    return retention.purge([retention_rules.EMERGENCY_ORDERS], now)


@ticks.tick("publication.purge", seconds=24 * 3600, queue="housekeeping")
def purge_published_versions(now: datetime) -> int:
    return retention.purge([retention_rules.PUBLISHED_VERSIONS], now)


ticks.tick("switches.expire", seconds=1, queue="switches", pending=lambda now: [past_expiry(now)])(
    services.expire_due
)
ticks.tick(RAMPS, seconds=1, queue="ramps", pending=lambda now: [engine.find_due_jobs(RAMPS, now)])(
    partial(engine.run_tick, RAMPS)
)
ticks.tick(
    "emergency.reconcile",
    seconds=1,
    queue="switches",
    pending=lambda now: [emergency.due_orders(now)],
)(emergency.reconcile_orders)
ticks.tick(
    "switches.lost_versions",
    seconds=1,
    queue="switches",
    pending=lambda _now: [lost_versions.find_open()],
)(lost_versions.reconcile_lost_versions)
ticks.tick("switches.remind", seconds=60, queue="switches")(services.remind_due)
ticks.tick("switches.reconfirm", seconds=60, queue="switches")(services.call_for_reconfirmation)
ticks.tick("drills.schedule", seconds=60, queue="jobs")(drills.begin_due)
ticks.tick("report.weekly", seconds=60, queue="reports")(report.run_due)
ticks.tick(
    "trips.settle", seconds=5, queue="switches", pending=lambda _now: [history.open_questions()]
)(trips.close_engaged)
ticks.tick(
    "trips.requested",
    seconds=1,
    queue="switches",
    pending=lambda _now: [trip_requests.select_undecided()],
)(trip_services.decide_open_requests)
