"""Alarms for data planes and relays that are silent, lag or have no snapshot."""

from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core.canonical import timestamp
from controlplane.core.escalations import services as escalations
from controlplane.core.fleet import queries
from controlplane.core.fleet.explanations import explain
from controlplane.core.fleet.queries import Fleet
from controlplane.core.fleet.statuses import CURRENT, FleetMember
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.process_models import Tick

TICK = "fleet.check"
EVENT, OVER = "fleet.impaired", "fleet.recovered"
PREFIX = "fleet:"
MAX_SUBJECT_LENGTH = 120
SILENT_AFTER = timedelta(minutes=1)
"""Silence before an alarm; a process that is replaced or restarted takes less."""
AWAY = timedelta(minutes=1)
MAX_OPEN = 10


def check_fleet(now: datetime) -> int:
    """Update the alarms, unless this periodic check last ran over a minute ago.

    In that case the whole system was down: nobody could report.
    """
    last = Tick.objects.filter(name=TICK).values_list("ran_at", flat=True).first()
    if last is None or now - last > AWAY:
        return 0
    return update_alarms(now)


@transaction.atomic
def update_alarms(now: datetime) -> int:
    """Open and close alarms by the state of the fleet; return the number of changes.

    At most `MAX_OPEN` are open at once; the page lists the rest. A relay that is silent because
    its upstream is has no alarm of its own.
    """
    fleet = queries.load_fleet(now)
    members = {get_subject(member): member for member in fleet.members}
    alarms = {
        alarm.subject: alarm for alarm in Escalation.objects.filter(closed_at=None, event=EVENT)
    }
    over = [
        alarm
        for subject, alarm in alarms.items()
        if subject not in members or members[subject].state == CURRENT
    ]
    for alarm in over:
        _close(alarm, members.get(alarm.subject), now)
    opening = [
        member
        for subject, member in members.items()
        if subject not in alarms and _is_alarming(member, now)
    ][: max(0, MAX_OPEN - len(alarms) + len(over))]
    for member in opening:
        _open(member, fleet, now)
    return len(over) + len(opening)


def get_subject(member: FleetMember) -> str:
    return f"{PREFIX}{member.name}"[:MAX_SUBJECT_LENGTH]


def _is_alarming(member: FleetMember, now: datetime) -> bool:
    if member.is_silent:
        return not member.follows_silent and now - member.heard_at > SILENT_AFTER
    return member.is_impaired


def _open(member: FleetMember, fleet: Fleet, now: datetime) -> None:
    explanation = explain(member, fleet.head, now)
    escalations.open_escalation(
        subject=get_subject(member),
        event=EVENT,
        severity="warning",
        facts={
            "said": f"{member.kind.capitalize()} {member.name} {explanation.fact}",
            "meaning": explanation.meaning,
            "to_do": explanation.to_do,
            "heard_at": timestamp(member.heard_at),
            "path": "/fleet/",
        },
        now=now,
    )


def _close(alarm: Escalation, member: FleetMember | None, now: datetime) -> None:
    if member is None:
        reason = "It stopped, or was not heard for a day, and is no longer listed."
    else:
        reason = f"It is up to date again, at version {member.version:,}."
    escalations.close(subject=alarm.subject, now=now)
    outbox.announce(
        event=OVER,
        event_key=f"escalation:{alarm.pk}:over",
        subject=alarm.subject,
        facts={**alarm.facts, "since_at": timestamp(alarm.opened_at), "reason": reason},
        now=now,
    )
