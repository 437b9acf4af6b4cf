"""Groups of alerts that have one cause, assigned when the alerts open."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from controlplane.core.audit.models import AuditEntry
from controlplane.core.sql import execute
from slo.arithmetic.alert_groups import WITHIN, GroupableAlert, assign_groups, link_alert
from slo.models import Alert
from slo.models.objective import TRIP

OVERRIDE_ACTIONS = ("override.set", "override.replaced")
CHANGED_WITHIN = timedelta(minutes=15)
"""Time before the alerts in which an override counts as their common change."""
DEPENDENCY_PREFIX, EPISODE_THREAD = "dependency:", "episode:"
MAX_NAMED = 3

_ASSIGN = """
    UPDATE slo_alert AS alert SET "group" = assigned.group_id
    FROM unnest(%(ids)s::bigint[], %(groups)s::bigint[]) AS assigned (id, group_id)
    WHERE alert.id = assigned.id
"""


def group_opened_alerts(opened: Sequence[Alert], now: datetime) -> None:
    """Assign groups to alerts that have just opened; the caller holds the lock for alerts."""
    if not opened:
        return
    recent = Alert.objects.filter(resolved_at__isnull=True, opened_at__gt=now - WITHIN)
    overrides = AuditEntry.objects.filter(action__in=OVERRIDE_ACTIONS, at__gt=now - CHANGED_WITHIN)
    targets = overrides.values_list("target", flat=True)
    changed = {one.removeprefix(DEPENDENCY_PREFIX) for one in targets}
    assigned = assign_groups(
        GroupableAlert(
            id=one.pk,
            opened_at=one.opened_at,
            links=link_alert(
                service=one.service,
                subject=one.subject,
                switches=_list_switches(one),
                changed=changed,
            ),
            group=one.group,
        )
        for one in recent.select_related("slo")
    )
    execute(_ASSIGN, {"ids": [*assigned], "groups": [*assigned.values()]})


def _list_switches(alert: Alert) -> list[str]:
    """Return the switches that an alert is about, or that its SLO trips."""
    if alert.thread.startswith(EPISODE_THREAD):
        return [alert.subject]
    actions = alert.slo.actions if alert.slo else ()
    return [one["switch"] for one in actions if one.get("do") == TRIP]


def describe_group(members: Sequence[Alert]) -> str:
    """Return a headline for alerts of one cause: their number and services, or one's subject."""
    if len(members) == 1:
        return members[0].subject_label
    names = list(dict.fromkeys(one.service or one.subject_label for one in members))
    shown = ", ".join(names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{len(members)} alerts about {shown}{more}"
