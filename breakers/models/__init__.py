"""The tables of this app, gathered for Django from the rooms they live in."""

from breakers.models.alarm import Alarm, Probe
from breakers.models.override import Override
from breakers.models.registry import Channel, Dependency, Registry, Service
from breakers.models.reported import BreakerState, Minute, Transition

__all__ = [
    "Alarm",
    "BreakerState",
    "Channel",
    "Dependency",
    "Minute",
    "Override",
    "Probe",
    "Registry",
    "Service",
    "Transition",
]
