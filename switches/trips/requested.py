"""What apps of the house ask machines to stop: each request is a wish like any other."""

from datetime import datetime

from controlplane.core.actors import system
from controlplane.core.trip_requests import services as trip_requests
from controlplane.core.trip_requests.models import TripRequest
from switches.trips import services, settle


def answer(now: datetime) -> int:
    """Decide what was asked since, by the policies for machines; returns how many that was."""
    return trip_requests.answer_open(_decide, now)


def _decide(request: TripRequest, now: datetime) -> tuple[bool, str]:
    """Whether the switch was stopped, and why or why not."""
    actor = system(request.source)
    if request.is_over:
        return False, settle.resolve(
            switch=request.switch, fingerprint=request.fingerprint, actor=actor, now=now
        )
    asked = services.trip(
        switch=request.switch,
        source=request.source,
        fingerprint=request.fingerprint,
        reason=request.reason,
        evidence=request.evidence,
        expires_in=request.expires_in,
        actor=actor,
        now=now,
    )
    return asked.tripped, asked.why
