"""The timeline of an alert, and other events around it from the audit trail."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core.actors import label_of
from controlplane.core.audit.models import AuditEntry
from controlplane.core.comments.services import list_comments
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.trip_requests.models import TripRequest
from slo import comment_kinds
from slo.alerts import notifications
from slo.arithmetic.subjects import format_target
from slo.models import Alert
from switches.models import EmergencyOrder, Episode

MAX_NOTIFIED = 50
MAX_COMMENTS = 100
NOTIFIED_FACT = "told"
"""Key of the fact of an escalation that lists the people notified, and the times."""
BEFORE = timedelta(minutes=30)
AFTER = timedelta(minutes=15)
"""Events are included up to this long after the alert has resolved."""
SCOPE = "audit:read"
"""Scope required to read incident events, because they quote the audit trail."""
MAX_EVENTS = 200
MAX_READ = 2000
GROUP_WITHIN = timedelta(minutes=1)
MAX_UNGROUPED = 3
MAX_NAMED = 3
"""Most targets named in an event that groups similar audit rows."""
RELEVANT_ACTIONS = (
    *("switch", "emergency_order", "episode", "ramp", "approval", "review", "override", "trip"),
    *("trip_policy", "rule"),
    *("service", "dependency", "degradation", "outage", "dead_letter", "dead_letters"),
    *("slo", "threshold", "exclusion", "alert", "escalation"),
)
"""First parts of the audit actions (`switch` of `switch.engaged`) that are included."""
_RELEVANT = rf"^({'|'.join(RELEVANT_ACTIONS)})[.]"


@dataclass(frozen=True)
class TimelineEntry:
    """An event in a timeline; `icon` is the name of an icon, `more` a second line of text."""

    at: datetime
    icon: str
    text: str
    more: str = ""
    who: str = ""
    path: str = ""


def load_timeline(alert: Alert, escalations: Sequence[Escalation]) -> list[TimelineEntry]:
    found = [
        TimelineEntry(alert.opened_at, "attention", "Opened", alert.summary),
        *_notification_entries(alert),
        *(
            TimelineEntry(
                datetime.fromisoformat(notified["at"]),
                "person",
                f"Escalated to {', '.join(str(name) for name in notified['who'])}",
            )
            for one in escalations
            for notified in one.facts.get(NOTIFIED_FACT, [])
        ),
        *_acknowledgement_entries(alert),
        *_comment_entries(alert),
        *_trip_entries(load_trip_requests(alert)),
    ]
    if alert.resolved_at is not None:
        why = alert.resolved_because
        found.append(TimelineEntry(alert.resolved_at, "check", "Resolved", why))
    return sorted(found, key=lambda one: one.at)


def load_trip_requests(alert: Alert) -> list[TripRequest]:
    key = notifications.alert_subject(alert)
    requests = TripRequest.objects.filter(fingerprint=key, is_over=False)
    return list(requests.order_by("requested_at", "pk"))


def load_escalations(alert: Alert) -> list[Escalation]:
    """Return the escalations of an alert, more than one if it was reopened."""
    rows = Escalation.objects.filter(subject=notifications.alert_subject(alert))
    return list(rows.order_by("opened_at", "pk"))


def last_called(escalation: Escalation) -> list[str]:
    """Return the names of the people notified by the latest step of an escalation."""
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
        text = "Recovery sent" if event == notifications.RESOLVED_EVENT else "Notification sent"
        more = f"{failed} of {len(destinations)} could not be delivered" if failed else ""
        yield TimelineEntry(at, "delivery", f"{text} to {names}", more, path="/deliveries/")


def _acknowledgement_entries(alert: Alert) -> Iterator[TimelineEntry]:
    rows = AuditEntry.objects.filter(
        target=notifications.alert_subject(alert), action="alert.acknowledged"
    ).order_by("pk")
    for row in rows:
        who = label_of(row.actor_type, row.actor_name)
        yield TimelineEntry(row.at, "eye", "Acknowledged", row.reason, who)
    if not rows and alert.acknowledged_at is not None:
        who = alert.acknowledged_by
        yield TimelineEntry(alert.acknowledged_at, "eye", "Acknowledged when it opened", "", who)


def _comment_entries(alert: Alert) -> Iterator[TimelineEntry]:
    for one in list_comments(comment_kinds.KIND, [str(alert.pk)])[:MAX_COMMENTS]:
        yield TimelineEntry(one.written_at, "edit", "Comment", one.text, one.author)


def _trip_entries(requests: Sequence[TripRequest]) -> Iterator[TimelineEntry]:
    for one in requests:
        page = "/switches/{}/{}/".format(*one.switch.split(":", 1))
        yield TimelineEntry(
            one.requested_at, "trip", f"Requested to engage {one.switch}", path=page
        )
        if one.decided_at is not None:
            text = f"{one.switch} engaged" if one.tripped else f"{one.switch} not engaged"
            symbol = "engaged" if one.tripped else "info"
            yield TimelineEntry(one.decided_at, symbol, text, one.why, path=page)


def load_incident_events(alert: Alert, now: datetime) -> tuple[list[TimelineEntry], bool]:
    """Return the alert's timeline with related events of the audit trail, ascending by time.

    These events are from half an hour before the alert opened until shortly after it resolved. The
    second value returned is True if some of them were left out.
    """
    own = load_timeline(alert, load_escalations(alert))
    since = alert.opened_at - BEFORE
    until = min(now, (alert.resolved_at or now) + AFTER)
    rows = AuditEntry.objects.filter(at__gte=since, at__lte=until, action__regex=_RELEVANT)
    # Acknowledgements are part of the alert's own timeline.
    others = rows.exclude(target=notifications.alert_subject(alert)).order_by("pk")
    read = list(others[: MAX_READ + 1])
    found = _group_alike(read[:MAX_READ])
    orders = _emergency_order_entries(since, until)
    events = sorted([*own, *orders, *found[:MAX_EVENTS]], key=lambda one: one.at)
    return events, len(found) > MAX_EVENTS or len(read) > MAX_READ


def _emergency_order_entries(since: datetime, until: datetime) -> Iterator[TimelineEntry]:
    """Yield emergency orders at the time of the data plane that accepted them.

    The audit trail has them since the database came back.
    """
    orders = EmergencyOrder.objects.filter(at__gte=since, at__lte=until)
    for order in orders.order_by("at", "pk")[:MAX_EVENTS]:
        is_engage = order.action == EmergencyOrder.Action.ENGAGE
        done = "emergency order" if is_engage else "emergency order withdrawn"
        text = f"{order.switch}: {done} on the data plane {order.plane}"
        who = label_of(order.by_type, order.by_name)
        yield TimelineEntry(order.at, "engaged", text, order.reason, who)


def load_episodes(alert: Alert, now: datetime) -> list[Episode]:
    until = alert.resolved_at or now
    rows = Episode.objects.filter(engaged_at__lte=until)
    meanwhile = rows.filter(ended_at__isnull=True) | rows.filter(ended_at__gte=alert.opened_at)
    return list(meanwhile.order_by("engaged_at", "pk")[:MAX_EVENTS])


def _group_alike(rows: Iterable[AuditEntry]) -> list[TimelineEntry]:
    """Return audit rows as timeline entries.

    Many rows of the same actor and action within a minute become one entry.
    """
    groups: list[list[AuditEntry]] = []
    latest: dict[tuple[str, str, str], list[AuditEntry]] = {}
    for row in rows:
        alike = (row.actor_type, row.actor_name, row.action)
        group = latest.get(alike)
        if group is None or row.at - group[0].at > GROUP_WITHIN:
            group = latest[alike] = []
            groups.append(group)
        group.append(row)
    found: list[tuple[AuditEntry, str, str]] = []
    for group in groups:
        kind, _, verb = group[0].action.partition(".")
        action = f"{kind.replace('_', ' ')} {verb.replace('_', ' ')}"
        if len(group) <= MAX_UNGROUPED:
            for row in group:
                target = format_target(row.target)
                about = target if ":" in target else f"{kind} {target}"
                found.append((row, f"{about}: {action}", row.reason))
        else:
            names = ", ".join(format_target(row.target) for row in group[:MAX_NAMED])
            text = f"{action}, {len(group)} times: {names} and {len(group) - MAX_NAMED} more"
            reasons = {row.reason for row in group}
            found.append((group[0], text, reasons.pop() if len(reasons) == 1 else ""))
    return [
        TimelineEntry(row.at, "", text, why, label_of(row.actor_type, row.actor_name))
        for row, text, why in found
    ]
