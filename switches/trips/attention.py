"""Items of the attention page about trips that wait for a person's decision."""

from collections.abc import Sequence
from datetime import datetime

from controlplane.core.actions import Action
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import AttentionAction, AttentionItem, attention_rows
from switches.models import Trip

from . import history, notifications, resolution

RESOLVED = "Its alert has resolved. "


@attention_rows(15, lambda _now: history.open_questions().order_by("id"))
def list_waiting_trips(_now: datetime, questions: Sequence[Escalation]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="trip",
            severity="critical" if trip.outcome == Trip.Outcome.PERSON else "warning",
            title=f"{trip.source} requests to stop {trip.switch}",
            detail=f"{RESOLVED if trip.resolved_at else ''}{trip.why} Reason: {trip.reason}",
            path=f"/trips/#trip-{trip.pk}",
            since=trip.at,
            actions=(
                AttentionAction(
                    "Engage…",
                    notifications.engage_path(trip),
                    "switches:write",
                    "engaged",
                    authority=Action.ENGAGE,
                ),
                AttentionAction(
                    "Dismiss…",
                    f"/trips/{trip.pk}/dismiss/",
                    "switches:write",
                    "close",
                    authority=Action.EXTEND,
                ),
            ),
            subjects=(f"{history.SUBJECT}{trip.pk}",),
            resource=trip.switch,
        )
        for trip in resolution.list_waiting(questions)
    ]
