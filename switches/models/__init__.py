"""Models of switches."""

from switches.models.drill import Drill, DrillMark, DrillSchedule
from switches.models.emergency import EmergencyOrder
from switches.models.lost_version import LostChange, LostVersion, PublishedVersion
from switches.models.ramp import Ramp
from switches.models.report import TeamReport, WeeklyReport, WeekReport
from switches.models.rule import Rule
from switches.models.switch import (
    Episode,
    OnExpiry,
    Publication,
    Switch,
    SwitchQuerySet,
    SwitchState,
)
from switches.models.trip import Trip, TripPolicy

__all__ = [
    "Drill",
    "DrillMark",
    "DrillSchedule",
    "EmergencyOrder",
    "Episode",
    "LostChange",
    "LostVersion",
    "OnExpiry",
    "Publication",
    "PublishedVersion",
    "Ramp",
    "Rule",
    "Switch",
    "SwitchQuerySet",
    "SwitchState",
    "TeamReport",
    "Trip",
    "TripPolicy",
    "WeekReport",
    "WeeklyReport",
]
