"""Periodic tasks (ticks) of switches."""

from datetime import datetime

from controlplane.core import retention, ticks
from controlplane.core.jobs import engine
from controlplane.core.trip_requests import services as trip_requests
from switches.drills import schedules as drills
from switches.report import services as report
from switches.services.expire import past_expiry
from switches.trips import resolution as trips
from switches.trips import services as trip_services

from . import retention_rules, services


@ticks.tick("switches.expire", seconds=1, queue="switches", pending=lambda now: [past_expiry(now)])
def expire_switches(now: datetime) -> int:
    return services.expire_due(now)


@ticks.tick(
    "ramps.turn",
    seconds=1,
    queue="ramps",
    pending=lambda now: [engine.find_due_jobs("ramps.turn", now)],
)
def go_on_with_ramps(now: datetime) -> int:
    return engine.run_tick("ramps.turn", now)


@ticks.tick("switches.remind", seconds=60, queue="switches")
def remind_of_expiries(now: datetime) -> int:
    return services.remind_due(now)


@ticks.tick("switches.reconfirm", seconds=60, queue="switches")
def call_for_reconfirmation(now: datetime) -> int:
    return services.call_for_reconfirmation(now)


@ticks.tick("drills.schedule", seconds=60, queue="jobs")
def begin_drills(now: datetime) -> int:
    return drills.begin_due(now)


@ticks.tick("report.weekly", seconds=60, queue="reports")
def weekly_report(now: datetime) -> int:
    return report.run_due(now)


@ticks.tick(
    "trips.settle", seconds=5, queue="switches", pending=lambda _now: [trips.open_questions()]
)
def settle_trips(now: datetime) -> int:
    return trips.close_engaged(now)


@ticks.tick(
    "trips.requested",
    seconds=1,
    queue="switches",
    pending=lambda _now: [trip_requests.select_undecided()],
)
def answer_trip_requests(now: datetime) -> int:
    return trip_services.decide_open_requests(now)


@ticks.tick("trips.purge", seconds=24 * 3600, queue="housekeeping")
def purge_trips(now: datetime) -> int:
    return retention.purge([retention_rules.TRIPS], now)
