"""Items of the attention page about trips that wait for a person's decision."""

from datetime import datetime

from controlplane.core.page_registry import AttentionItem, attention_source
from switches.models import Trip

from . import history, resolution

RESOLVED = "Its alert has resolved. "


@attention_source(15, only_if=lambda _now: history.open_questions())
def list_waiting_trips(_now: datetime) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="trip",
            severity="critical" if trip.outcome == Trip.Outcome.PERSON else "warning",
            title=f"{trip.source} asks to stop {trip.switch}",
            detail=f"{RESOLVED if trip.resolved_at else ''}{trip.why} It says: {trip.reason}",
            path=f"/trips/#trip-{trip.pk}",
            since=trip.at,
        )
        for trip in resolution.list_waiting()
    ]
