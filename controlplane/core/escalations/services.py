"""Opening, acknowledging and closing escalations; `escalation.advance` tells the next person."""

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
"""After an acknowledgement, nobody is notified for this long."""
# What an app acknowledges by a service of its own, which writes more than this row.
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
    """Begin to tell people, in the caller's transaction; the one already open is returned as is.

    `event` names the wording of its messages and `facts` what they say; `severity` names the steps.
    The first step is told by the next turn of the tick, within seconds. `announced`: the routes
    are told of it already, so that with nobody behind any step they are told again an hour later.
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
    """The same for many subjects at once, by what their messages say, that the routes are told of
    already; those that are open stay as they are. One statement, in the caller's transaction."""
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
    """Somebody knows: no further step for 24 hours, then once a day until it is closed.

    In the caller's transaction, and without effect if nothing is open for the subject. The caller
    writes the audit row.
    """
    acknowledged = Escalation.objects.filter(subject=subject, closed_at=None).update(
        acknowledged_at=now, acknowledged_by=actor.label, next_at=now + QUIET
    )
    if acknowledged:
        _notify_incident_followers("escalation.acknowledged", [subject], {"by": actor.label}, now)


def close(*, subject: str, now: datetime) -> None:
    """It is over: nobody is told any more. In the caller's transaction."""
    close_all([subject], now=now)


def close_all(subjects: Collection[str], *, now: datetime) -> None:
    """The same for many."""
    rows = Escalation.objects.filter(subject__in=subjects, closed_at=None)
    if rows.update(closed_at=now, next_at=None):
        _notify_incident_followers("escalation.closed", subjects, {}, now)


@transaction.atomic
def acknowledge_one(
    *, escalation_id: int, actor: Actor, now: datetime, comment: str = ""
) -> Escalation:
    """Acknowledge an escalation that no app acknowledges by itself, with an audit row.

    Raises :class:`NotFound`, and :class:`Conflict` for one that is over or is acknowledged
    elsewhere. Acknowledging once more begins another quiet day.
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
