"""Switches' tables."""

from switches.models.report import WeeklyReport
from switches.models.rule import Rule
from switches.models.switching import (
    Episode,
    OnExpiry,
    Publication,
    Scope,
    State,
    Switch,
    SwitchQuerySet,
)
from switches.models.trip import Trip, TripPolicy

__all__ = [
    "Episode",
    "OnExpiry",
    "Publication",
    "Rule",
    "Scope",
    "State",
    "Switch",
    "SwitchQuerySet",
    "Trip",
    "TripPolicy",
    "WeeklyReport",
]
