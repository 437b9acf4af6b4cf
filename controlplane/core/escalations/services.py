"""Services that open, acknowledge and close escalations.

The tick `escalation.advance` sends the notifications of each step.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.json_values import require_readable
from controlplane.core.outbox import router
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation

QUIET_PERIOD = timedelta(hours=24)
"""Time without notifications after an acknowledgement."""
# Types of subjects that their own app acknowledges, as the app also changes rows of its own.
ACKNOWLEDGED_ELSEWHERE = {
    "alert": "on its page, or POST /api/v1/alerts/{id}/ack",
    "episode": "on the page of its switch, or POST …/acknowledge there",
}


def open_escalation(
    *,
    subject: str,
    event: str,
    severity: str,
    facts: Mapping[str, Any],
    now: datetime,
    scope: str = "",
    resource: str = "",
    announced: bool = False,
) -> Escalation:
    """Open an escalation for `subject`, or return the open one unchanged.

    Runs in the caller's transaction. `event` names the message template, `facts` fill it, and
    `severity` selects the escalation steps, after those of the teams that own `resource`
    (`segment:finance`). The people of the first step are notified within seconds. `announced` means
    that the event's routes have been notified already; if no step reaches anybody, they are
    notified again an hour later.
    """
    fields = {"event": event, "severity": severity, "scope": scope, "resource": resource}
    times = {"opened_at": now, "next_at": now, "notified_at": now if announced else None}
    return Escalation.objects.get_or_create(
        subject=subject, closed_at=None, defaults={**fields, "facts": dict(facts), **times}
    )[0]


def open_announced(
    facts: Mapping[str, Mapping[str, Any]],
    *,
    resources: Mapping[str, str],
    event: str,
    severity: str,
    now: datetime,
) -> None:
    """Open escalations of an event whose routes have been notified already, in one statement.

    `facts` are the values for the messages, and `resources` what teams may own, by subject.
    Subjects with an open escalation stay unchanged. Runs in the caller's transaction.
    """
    times = {"opened_at": now, "next_at": now, "notified_at": now}
    rows = (
        Escalation(
            subject=subject,
            event=event,
            severity=severity,
            resource=resources[subject],
            facts=dict(values),
            **times,
        )
        for subject, values in facts.items()
    )
    Escalation.objects.bulk_create(rows, ignore_conflicts=True)


def acknowledge(*, subject: str, actor: Actor, now: datetime) -> None:
    """Acknowledge the subject's open escalation, if any, in the caller's transaction.

    Nobody is notified for 24 hours, then once a day until the escalation is closed. The caller
    writes the audit row.
    """
    acknowledged = Escalation.objects.filter(subject=subject, closed_at=None).update(
        acknowledged_at=now, acknowledged_by=actor.label, next_at=now + QUIET_PERIOD
    )
    if acknowledged:
        _notify_incident_followers("escalation.acknowledged", [subject], {"by": actor.label}, now)


def close(*, subject: str, now: datetime) -> None:
    """Close the subject's open escalation, in the caller's transaction."""
    close_all([subject], now=now)


def close_all(subjects: Collection[str], *, now: datetime) -> None:
    """Close the open escalations of many subjects, in the caller's transaction."""
    rows = Escalation.objects.filter(subject__in=subjects, closed_at=None)
    if rows.update(closed_at=now, next_at=None):
        _notify_incident_followers("escalation.closed", subjects, {}, now)


@transaction.atomic
def acknowledge_one(
    *, escalation_id: int, actor: Actor, now: datetime, comment: str = ""
) -> Escalation:
    """Acknowledge an escalation by its id, and write an audit row.

    This is for escalations that no other page, such as that of a switch, acknowledges. A repeated
    acknowledgement starts another 24 hours without notifications. Raises :class:`NotFound`, and
    :class:`Conflict` if the escalation is closed or belongs to another page.
    """
    actor.require("switches:write")
    require_readable(comment=comment)
    escalation = Escalation.objects.select_for_update().filter(pk=escalation_id).first()
    if escalation is None:
        raise NotFound(f"There is no escalation {escalation_id}.")
    where = ACKNOWLEDGED_ELSEWHERE.get(escalation.subject.partition(":")[0])
    if where is not None:
        path = escalation.facts.get("path")
        raise Conflict(f"Acknowledge it {where}.", subject=escalation.subject, path=path)
    if escalation.closed_at is not None:
        raise Conflict(f"{escalation.subject} is over; there is nothing to acknowledge.")
    authority.require(actor, Action.EXTEND, escalation.resource)
    acknowledge(subject=escalation.subject, actor=actor, now=now)
    audit.record(
        actor=actor,
        action="escalation.acknowledged",
        target=escalation.subject,
        reason=comment,
        after={
            "escalation": escalation.pk,
            "event": escalation.event,
            "notices": escalation.notices,
        },
        now=now,
    )
    escalation.refresh_from_db()
    return escalation


def _notify_incident_followers(
    event: str, subjects: Collection[str], facts: Mapping[str, Any], now: datetime
) -> None:
    for subject, destinations in router.get().incident_followers(subjects).items():
        outbox.announce(
            event=event,
            event_key=f"{event}:{subject}:{now.isoformat()}",
            facts={"subject": subject, **facts},
            subject=subject,
            to=destinations,
            now=now,
        )
