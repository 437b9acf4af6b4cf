"""Retention rules of the tables of switches; most of them are kept as proof."""

from datetime import timedelta

from controlplane.core.retention import Rule, lasting, rule

TRIPS = rule(
    Rule(
        name="trips",
        model="switches.Trip",
        kept=timedelta(days=400),
        where="last_at < %(before)s AND outcome <> 'tripped' AND episode_id IS NULL",
        since="last_at",
        order="at",
        bounds=(90, 3650),
        tick="trips.purge",
        why="What machines wished to stop, and why they were refused.",
        but="What stopped a switch: it belongs to its episode.",
    )
)

lasting(
    "What was stopped, by whom and why, is the history of the installation.",
    "switches.Episode",
    "switches.Ramp",
    "switches.Drill",
    "switches.WeeklyReport",
)
lasting(
    "Set by people or files, until they take it away.",
    "switches.Switch",
    "switches.Rule",
    "switches.TripPolicy",
    "switches.DrillMark",
    "switches.DrillSchedule",
)
lasting("One row.", "switches.Publication")
