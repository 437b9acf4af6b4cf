"""Retention rules of the tables of switches; most tables are kept permanently as evidence."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule, keep_permanently

TRIPS = RetentionRule(
    name="trips",
    model="switches.Trip",
    period=timedelta(days=400),
    where="last_at < %(before)s AND outcome <> 'tripped' AND episode_id IS NULL",
    since="last_at",
    order="at",
    bounds=(90, 3650),
    tick="trips.purge",
    why="Trip requests of monitors, and why they were refused.",
    exempt="Trips that engaged a switch belong to its episode.",
)

EMERGENCY_ORDERS = RetentionRule(
    name="emergency-orders",
    model="switches.EmergencyOrder",
    period=timedelta(days=400),
    where="closed_at < %(before)s",
    since="closed_at",
    bounds=(400, 3650),
    tick="emergency.purge",
    why="Orders that data planes accepted without the database, and what became of each.",
    exempt="Orders that are not closed.",
)

PUBLISHED_VERSIONS = RetentionRule(
    name="published-versions",
    model="switches.PublishedVersion",
    period=timedelta(days=400),
    where="published_at < %(before)s AND NOT EXISTS (SELECT FROM switches_publication p"
    " WHERE p.epoch = it.epoch AND p.version = it.version)",
    since="published_at",
    order="id",
    bounds=(30, 3650),
    tick="publication.purge",
    why="Numbers of published versions, with which data planes detect that one was lost.",
    exempt="The current version.",
)

RETENTION_RULES.register(TRIPS, EMERGENCY_ORDERS, PUBLISHED_VERSIONS)

keep_permanently(
    "Engagements and their reasons are the history of the installation.",
    "switches.Episode",
    "switches.Ramp",
    "switches.Drill",
    "switches.LostVersion",
    "switches.LostChange",
    "switches.TeamReport",
    "switches.WeeklyReport",
)
keep_permanently(
    "Set and removed by people or configuration files.",
    "switches.Switch",
    "switches.Rule",
    "switches.TripPolicy",
    "switches.DrillMark",
    "switches.DrillSchedule",
)
keep_permanently("One row.", "switches.Publication")
