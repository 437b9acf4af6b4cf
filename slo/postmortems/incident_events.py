"""Events around an alert, from its timeline and from the audit trail of the installation."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from controlplane.core.actors import label_of
from controlplane.core.audit.models import AuditEntry
from slo.alerts import notifications
from slo.models import Alert
from switches.models import Episode

from . import alert_timeline
from .alert_timeline import TimelineEntry

BEFORE = timedelta(minutes=30)
AFTER = timedelta(minutes=15)
"""Time after the alert has resolved from which events are included."""
SCOPE = "audit:read"
"""Scope required to read incident events, because they quote the audit trail."""
MAX_EVENTS = 200
MAX_READ = 2000
GROUP_WITHIN = timedelta(minutes=1)
MAX_UNGROUPED = 3
MAX_NAMED = 3
"""Most targets named in an event that groups similar audit rows."""
RELEVANT_ACTIONS = (
    *("switch", "episode", "ramp", "approval", "review", "override", "trip", "trip_policy", "rule"),
    *("service", "dependency", "degradation", "outage", "dead_letter", "dead_letters"),
    *("slo", "threshold", "exclusion", "alert", "escalation"),
)
"""First parts of the audit actions (`switch` of `switch.engaged`) that are included."""
_RELEVANT = rf"^({'|'.join(RELEVANT_ACTIONS)})[.]"


def load_incident_events(alert: Alert, now: datetime) -> tuple[list[TimelineEntry], bool]:
    """Return the events around an alert, ascending by time, and True if some were left out.

    They begin half an hour before the alert opened, and end shortly after it resolved.
    """
    own = alert_timeline.load_timeline(alert, alert_timeline.load_escalations(alert))
    since = alert.opened_at - BEFORE
    until = min(now, (alert.resolved_at or now) + AFTER)
    rows = AuditEntry.objects.filter(at__gte=since, at__lte=until, action__regex=_RELEVANT)
    # Acknowledgements are part of the alert's own timeline.
    others = rows.exclude(target=notifications.alert_subject(alert)).order_by("pk")
    read = list(others[: MAX_READ + 1])
    found = _group_alike(read[:MAX_READ])
    events = sorted([*own, *found[:MAX_EVENTS]], key=lambda one: one.at)
    return events, len(found) > MAX_EVENTS or len(read) > MAX_READ


def load_episodes(alert: Alert, now: datetime) -> list[Episode]:
    until = alert.resolved_at or now
    rows = Episode.objects.filter(engaged_at__lte=until)
    meanwhile = rows.filter(ended_at__isnull=True) | rows.filter(ended_at__gte=alert.opened_at)
    return list(meanwhile.order_by("engaged_at", "pk")[:MAX_EVENTS])


def _group_alike(rows: Iterable[AuditEntry]) -> list[TimelineEntry]:
    """Return the events of audit rows, one for each row.

    If an actor did an action more than `MAX_UNGROUPED` times within a minute, it is a single event.
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
    return [event for group in groups for event in _group_events(group)]


def _group_events(group: Sequence[AuditEntry]) -> list[TimelineEntry]:
    if len(group) <= MAX_UNGROUPED:
        return [_to_entry(row, _describe_action(row), row.reason) for row in group]
    first = group[0]
    names = ", ".join(row.target for row in group[:MAX_NAMED])
    action = first.action.replace(".", " ", 1).replace("_", " ")
    said = f"{action}, {len(group)} times: {names} and {len(group) - MAX_NAMED} more"
    why = first.reason if len({row.reason for row in group}) == 1 else ""
    return [_to_entry(first, said, why)]


def _to_entry(row: AuditEntry, said: str, why: str) -> TimelineEntry:
    return TimelineEntry(row.at, "", said, why, label_of(row.actor_type, row.actor_name))


def _describe_action(row: AuditEntry) -> str:
    kind, _, verb = row.action.partition(".")
    about = row.target if ":" in row.target else f"{kind} {row.target}"
    return f"{about}: {kind.replace('_', ' ')} {verb.replace('_', ' ')}"
