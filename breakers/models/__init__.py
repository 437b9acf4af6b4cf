"""Models of the registry and of breaker states."""

from breakers.models.registry import Channel, Dependency, Override, Registry, Service
from breakers.models.states import Alarm, BreakerState, Minute, Probe, Transition

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
