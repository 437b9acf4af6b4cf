"""Decision of trip requests that other apps store in the database."""

from datetime import datetime

from controlplane.core.actors import system_actor
from controlplane.core.trip_requests import services as trip_requests
from controlplane.core.trip_requests.models import TripRequest

from . import resolution, services


def decide_open_requests(now: datetime) -> int:
    """Decide the open requests by the trip policies and return how many were decided."""
    return trip_requests.decide_open(_decide, now)


def _decide(request: TripRequest, now: datetime) -> tuple[bool, str]:
    """Return True if the switch was engaged, and the reason."""
    actor = system_actor(request.source)
    if request.is_over:
        return False, resolution.resolve(
            switch=request.switch, fingerprint=request.fingerprint, actor=actor, now=now
        )
    result = services.trip(
        switch=request.switch,
        source=request.source,
        fingerprint=request.fingerprint,
        reason=request.reason,
        evidence=request.evidence,
        expires_in=request.expires_in,
        actor=actor,
        now=now,
    )
    return result.tripped, result.why
