"""The tables of this app, gathered for Django from the rooms they live in."""

from breakers.dead_letters.models import (
    Departure,
    DepthMinute,
    Gap,
    GroupDay,
    Letter,
    LetterGroup,
    LetterServer,
    LetterStream,
    Replay,
)
from breakers.models.alarm import Alarm, Probe
from breakers.models.override import Override
from breakers.models.registry import Channel, Dependency, Registry, Service
from breakers.models.reported import BreakerState, Minute, Transition

__all__ = [
    "Alarm",
    "BreakerState",
    "Channel",
    "Departure",
    "Dependency",
    "DepthMinute",
    "Gap",
    "GroupDay",
    "Letter",
    "LetterGroup",
    "LetterServer",
    "LetterStream",
    "Minute",
    "Override",
    "Probe",
    "Registry",
    "Replay",
    "Service",
    "Transition",
]
