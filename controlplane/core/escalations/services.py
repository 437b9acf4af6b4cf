"""Open, acknowledge and close escalations; the tick `escalation.advance` notifies each step."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.json_values import require_readable
from controlplane.core.outbox import router
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation

QUIET = timedelta(hours=24)
"""Time without notifications after an acknowledgement."""
# Subjects acknowledged by a service of their own app, which writes more than this row.
ELSEWHERE = {
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
    announced: bool = False,
) -> Escalation:
    """Open an escalation for `subject`, or return the open one unchanged.

    Runs in the caller's transaction. `event` names the message template, `facts` fill it, and
    `severity` selects the steps. The first step is notified by the next tick, within seconds. With
    `announced`, the routes have been notified already: if no step reaches anybody, they are
    notified again an hour later.
    """
    escalation, _ = Escalation.objects.get_or_create(
        subject=subject,
        closed_at=None,
        defaults={
            "event": event,
            "severity": severity,
            "scope": scope,
            "facts": dict(facts),
            "opened_at": now,
            "next_at": now,
            "notified_at": now if announced else None,
        },
    )
    return escalation


def open_announced(
    facts: Mapping[str, Mapping[str, Any]], *, event: str, severity: str, now: datetime
) -> None:
    """Open escalations for many subjects, given as facts by subject, in one statement.

    The routes have been notified already. Subjects with an open escalation are left unchanged. Runs
    in the caller's transaction.
    """
    Escalation.objects.bulk_create(
        (
            Escalation(
                subject=subject,
                event=event,
                severity=severity,
                facts=dict(said),
                opened_at=now,
                next_at=now,
                notified_at=now,
            )
            for subject, said in facts.items()
        ),
        ignore_conflicts=True,
    )


def acknowledge(*, subject: str, actor: Actor, now: datetime) -> None:
    """Record an acknowledgement: no notification for 24 hours, then one a day until it is closed.

    Runs in the caller's transaction; does nothing if no escalation is open for the subject. The
    caller writes the audit row.
    """
    acknowledged = Escalation.objects.filter(subject=subject, closed_at=None).update(
        acknowledged_at=now, acknowledged_by=actor.label, next_at=now + QUIET
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
    """Acknowledge an escalation that no app acknowledges itself, with an audit row.

    A repeated acknowledgement starts another 24 hours without notifications. Raises
    :class:`NotFound`, and :class:`Conflict` if the escalation is closed or has to be acknowledged
    elsewhere.
    """
    actor.require("switches:write")
    require_readable(comment=comment)
    found = Escalation.objects.select_for_update().filter(pk=escalation_id).first()
    if found is None:
        raise NotFound(f"There is no escalation {escalation_id}.")
    where = ELSEWHERE.get(found.subject.partition(":")[0])
    if where is not None:
        path = found.facts.get("path")
        raise Conflict(f"This is acknowledged {where}.", subject=found.subject, path=path)
    if found.closed_at is not None:
        raise Conflict(f"{found.subject} is over; there is nothing to acknowledge.")
    acknowledge(subject=found.subject, actor=actor, now=now)
    audit.record(
        actor=actor,
        action="escalation.acknowledged",
        target=found.subject,
        reason=comment,
        after={"escalation": found.pk, "event": found.event, "notices": found.notices},
        now=now,
    )
    found.refresh_from_db()
    return found


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
