"""Models of switches."""

from switches.models.drill import Drill, DrillMark, DrillSchedule
from switches.models.ramp import Ramp
from switches.models.report import WeeklyReport
from switches.models.rule import Rule
from switches.models.switching import Episode, OnExpiry, Publication, State, Switch, SwitchQuerySet
from switches.models.trip import Trip, TripPolicy

__all__ = [
    "Drill",
    "DrillMark",
    "DrillSchedule",
    "Episode",
    "OnExpiry",
    "Publication",
    "Ramp",
    "Rule",
    "State",
    "Switch",
    "SwitchQuerySet",
    "Trip",
    "TripPolicy",
    "WeeklyReport",
]
