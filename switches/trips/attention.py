"""What trips leave for a person to decide, on the page of all that waits."""

from datetime import datetime

from django.db.models import QuerySet

from controlplane.core.escalation.models import Escalation
from controlplane.core.page_registry import AttentionItem, attention_source
from switches.models import Trip

from . import settle


def questions(_now: datetime) -> QuerySet[Escalation]:
    return settle.questions()


@attention_source(15, only_if=questions)
def trips_for_a_person(_now: datetime) -> list[AttentionItem]:
    """A machine asks to stop something that it may not stop by itself."""
    return [
        AttentionItem(
            kind="trip",
            severity="critical" if trip.outcome == Trip.Outcome.PERSON else "warning",
            title=f"{trip.source} asks to stop {trip.switch}",
            detail=f"{_over(trip)}{trip.why} It says: {trip.reason}",
            path=f"/trips/#trip-{trip.pk}",
            since=trip.at,
        )
        for trip in settle.waiting()
    ]


def _over(trip: Trip) -> str:
    return "Its alert has resolved. " if trip.resolved_at else ""
