"""Attention items of trips that wait for a person's decision."""

from datetime import datetime

from django.db.models import QuerySet

from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import AttentionItem, attention_source
from switches.models import Trip

from . import resolution


def find_questions(_now: datetime) -> QuerySet[Escalation]:
    return resolution.open_questions()


@attention_source(15, only_if=find_questions)
def list_waiting_trips(_now: datetime) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="trip",
            severity="critical" if trip.outcome == Trip.Outcome.PERSON else "warning",
            title=f"{trip.source} asks to stop {trip.switch}",
            detail=f"{_resolved_prefix(trip)}{trip.why} It says: {trip.reason}",
            path=f"/trips/#trip-{trip.pk}",
            since=trip.at,
        )
        for trip in resolution.list_waiting()
    ]


def _resolved_prefix(trip: Trip) -> str:
    return "Its alert has resolved. " if trip.resolved_at else ""
