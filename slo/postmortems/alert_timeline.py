"""The timeline of an alert: notifications, escalation, acknowledgement, trips, and its end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core.actors import label_of
from controlplane.core.audit.models import AuditEntry
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.trip_requests.models import TripRequest
from slo.alerts import notifications
from slo.models import Alert

MAX_NOTIFIED = 50
NOTIFIED_FACT = "told"
"""Key of the fact of an escalation that lists the people notified, and the times."""


@dataclass(frozen=True)
class TimelineEntry:
    """An entry of a timeline; `icon` is the name of an icon, `more` a second line of text."""

    at: datetime
    icon: str
    said: str
    more: str = ""
    who: str = ""
    path: str = ""


def load_timeline(alert: Alert, escalations: Sequence[Escalation]) -> list[TimelineEntry]:
    found = [
        TimelineEntry(alert.opened_at, "attention", "It opened", alert.said),
        *_notification_entries(alert),
        *_escalation_entries(escalations),
        *_acknowledgement_entries(alert),
        *_trip_entries(load_trip_requests(alert)),
    ]
    if alert.resolved_at is not None:
        found.append(
            TimelineEntry(alert.resolved_at, "check", "It resolved", alert.resolved_because)
        )
    return sorted(found, key=lambda one: one.at)


def load_trip_requests(alert: Alert) -> list[TripRequest]:
    requests = TripRequest.objects.filter(
        fingerprint=notifications.alert_subject(alert), is_over=False
    )
    return list(requests.order_by("requested_at", "pk"))


def load_escalations(alert: Alert) -> list[Escalation]:
    """Return the escalations of an alert, more than one if it was reopened."""
    rows = Escalation.objects.filter(subject=notifications.alert_subject(alert))
    return list(rows.order_by("opened_at", "pk"))


def last_called(escalation: Escalation) -> list[str]:
    """Return the names of those notified by the last step of an escalation."""
    notified = escalation.facts.get(NOTIFIED_FACT, [])
    return notified[-1]["who"] if notified else []


def _notification_entries(alert: Alert) -> Iterator[TimelineEntry]:
    events = (notifications.ALERT_EVENT, notifications.RESOLVED_EVENT)
    rows = OutboxMessage.objects.filter(event_key__in=[f"{event}:{alert.pk}" for event in events])
    by_event: dict[str, list[OutboxMessage]] = {}
    for row in rows.order_by("pk")[:MAX_NOTIFIED]:
        by_event.setdefault(row.event, []).append(row)
    for event, destinations in by_event.items():
        at = min(one.finished_at or one.created_at for one in destinations)
        names = ", ".join(sorted({one.destination for one in destinations}))
        failed = sum(one.state == OutboxMessage.State.FAILED for one in destinations)
        said = "The recovery was told" if event == notifications.RESOLVED_EVENT else "It was told"
        more = f"{failed} of {len(destinations)} could not be delivered" if failed else ""
        yield TimelineEntry(at, "delivery", f"{said}: {names}", more, path="/deliveries/")


def _escalation_entries(escalations: Sequence[Escalation]) -> Iterator[TimelineEntry]:
    for one in escalations:
        for notified in one.facts.get(NOTIFIED_FACT, []):
            who = ", ".join(str(name) for name in notified["who"])
            yield TimelineEntry(datetime.fromisoformat(notified["at"]), "person", f"Called: {who}")


def _acknowledgement_entries(alert: Alert) -> Iterator[TimelineEntry]:
    rows = AuditEntry.objects.filter(
        target=notifications.alert_subject(alert), action="alert.acknowledged"
    ).order_by("pk")
    for row in rows:
        who = label_of(row.actor_type, row.actor_name)
        yield TimelineEntry(row.at, "eye", "Acknowledged", row.reason, who)
    if not rows and alert.acknowledged_at is not None:
        who = alert.acknowledged_by
        yield TimelineEntry(alert.acknowledged_at, "eye", "Known from the start", "", who)


def _trip_entries(requests: Sequence[TripRequest]) -> Iterator[TimelineEntry]:
    for one in requests:
        page = "/switches/{}/{}/".format(*one.switch.split(":", 1))
        yield TimelineEntry(one.requested_at, "trip", f"Asked to stop {one.switch}", path=page)
        if one.decided_at is not None:
            said = f"{one.switch} was stopped" if one.tripped else f"{one.switch} was not stopped"
            symbol = "engaged" if one.tripped else "info"
            yield TimelineEntry(one.decided_at, symbol, said, one.why, path=page)
