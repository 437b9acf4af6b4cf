"""One run of the escalation task: decide what is due, send notifications, save the new state."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

import structlog
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.expressions import Combinable

from controlplane.core.escalations import summaries
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.transports import destinations

from . import messages, schedule
from .ladders import Ladder, read_ladders

log = structlog.get_logger(__name__)

TURN_LOCK = 0x35CA1A7E  # arbitrary, unique among advisory locks
MAX_AT_ONCE = 1000
MAX_APART = 3  # More than these for one destination are sent as one message.

CHANGED = ("facts", "step", "next_at", "notices", "notified_at")
STEP, LISTING, ROUTES = "escalation.step", "escalation.listing", ""


@dataclass(frozen=True)
class Notification:
    """A notification that is due: its escalation, the escalation's steps, and the decision."""

    escalation: Escalation
    verdict: schedule.ScheduleDecision
    ladder: Ladder

    @property
    def destinations(self) -> list[str]:
        """The destinations of the steps to notify; if empty, routes decide the recipients."""
        to = [one for index in self.verdict.notified for one in self.ladder.rungs[index].reach.to]
        return list(dict.fromkeys(to))


def due_escalations(now: datetime | Combinable) -> QuerySet[Escalation]:
    """Return the open escalations whose next check is due; `now` may be a query expression."""
    return Escalation.objects.filter(closed_at=None, next_at__lte=now)


@transaction.atomic
def notify_due(now: datetime) -> int:
    """Send the due notifications of escalations; return their number, 0 if a run is active."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [TURN_LOCK])
        if not cursor.fetchone()[0]:
            return 0
    rows = due_escalations(now).select_for_update(skip_locked=True)
    found = list(rows.order_by("next_at", "id")[:MAX_AT_ONCE])
    if not found:
        return 0
    ladders = read_ladders(found, now)
    due = [notification for one in found if (notification := _evaluate(one, ladders, now))]
    # Repeats are sent early only with other repeats: steps come at any time, which would keep the
    # repeats of many escalations from aligning.
    if any(notification.verdict.kind != "step" for notification in due):
        due += _list_early(now)
    _send_notifications(due, now)
    for notification in due:
        one, verdict = notification.escalation, notification.verdict
        one.facts = messages.add_recipients(one, verdict, notification.ladder, now)
        one.step, one.next_at = verdict.step, verdict.next_at
        one.notices += 1
        one.notified_at = now
    Escalation.objects.bulk_update([notification.escalation for notification in due], CHANGED)
    if due:
        kinds = Counter(str(notification.verdict.kind) for notification in due)
        log.info("escalation.notified", escalations=len(due), **kinds)
    return len(due)


def _evaluate(
    escalation: Escalation, ladders: Mapping[int, Ladder], now: datetime
) -> Notification | None:
    """Return the escalation's notification if it is due; else save the time of the next check."""
    ladder = ladders[escalation.pk]
    status = escalation_status(escalation, ladder)
    verdict = schedule.evaluate(status, schedule_steps(ladder), now)
    if verdict.kind is not None:
        return Notification(escalation, verdict, ladder)
    escalation.step, escalation.next_at = verdict.step, verdict.next_at
    escalation.save(update_fields=["step", "next_at"])
    return None


def _list_early(now: datetime) -> list[Notification]:
    """Return repeats and reminders that are due soon, to be sent together with those due now."""
    rows = Escalation.objects.select_for_update(skip_locked=True)
    soon = rows.filter(
        Q(acknowledged_at=None, next_at__lte=now + schedule.TAKEN_ALONG)
        | Q(acknowledged_at__isnull=False, next_at__lte=now + schedule.REMINDER_TAKEN_ALONG),
        closed_at=None,
        next_at__gt=now,
        notified_at__isnull=False,
    )
    found = []
    rows_soon = list(soon.order_by("next_at", "id")[:MAX_AT_ONCE])
    ladders = read_ladders(rows_soon, now)
    for one in rows_soon:
        ladder = ladders[one.pk]
        status = escalation_status(one, ladder)
        steps = schedule_steps(ladder)
        may_send = one.next_at is not None and schedule.may_send_early(status, now, one.next_at)
        if may_send and schedule.is_repeat(status, steps):
            found.append(Notification(one, schedule.repeat_now(status, steps, now), ladder))
    return found


def _send_notifications(due: Sequence[Notification], now: datetime) -> None:
    """Send one message per escalation to each of its destinations.

    A destination with more than `MAX_APART` messages gets a single list of the escalations instead.
    On-call services always get single messages.
    """
    by_destination: dict[str, list[Notification]] = defaultdict(list)
    for notification in due:
        for destination in notification.destinations or (ROUTES,):
            by_destination[destination].append(notification)
    apart: dict[int, list[str]] = defaultdict(list)
    for destination, here in by_destination.items():
        tracks_incidents = destinations.transport_for(destination).tracks_incidents
        if len(here) > MAX_APART and not tracks_incidents:
            _send_list(here, destination, now)
        else:
            for notification in here:
                apart[notification.escalation.pk].append(destination)
    for notification in due:
        one = notification.escalation
        if to := apart.get(one.pk):
            outbox.announce(
                event=STEP,
                event_key=f"escalation:{one.pk}:{one.notices + 1}",
                facts=messages.step_facts(one, notification.verdict, notification.ladder),
                scope=one.scope,
                severity=one.severity,
                subject=one.subject,
                resource=one.resource,
                to=None if ROUTES in to else to,
                now=now,
            )


def _send_list(here: Sequence[Notification], destination: str, now: datetime) -> None:
    escalations = [notification.escalation for notification in here]
    # The key identifies the next notification of each of them.
    numbers = ",".join(sorted(f"{one.pk}.{one.notices + 1}" for one in escalations))
    outbox.announce_together(
        escalations,
        # Steps say where they go; routes say it together with the owners' channels.
        resource_of=lambda one: one.resource if destination == ROUTES else "",
        facts_of=messages.list_facts,
        event=LISTING,
        event_key=f"escalations:{sha256(numbers.encode()).hexdigest()[:40]}",
        severity=min((one.severity for one in escalations), key=SEVERITIES.index),
        to=None if destination == ROUTES else [destination],
        now=now,
    )


def escalation_status(escalation: Escalation, ladder: Ladder) -> schedule.EscalationStatus:
    """Return the state of an escalation; it climbs anew if another team became the owner."""
    is_same = escalation.facts.get(messages.CLIMBED_FOR, "") == ladder.owner
    return schedule.EscalationStatus(
        severity=escalation.severity,
        opened_at=escalation.opened_at,
        step=escalation.step if is_same else 0,
        reached=bool(escalation.facts.get(summaries.NOTIFIED)),
        notified_at=escalation.notified_at,
        acknowledged_at=escalation.acknowledged_at,
    )


def schedule_steps(ladder: Ladder) -> list[schedule.ScheduledStep]:
    return [
        schedule.ScheduledStep(timedelta(minutes=rung.step.after_minutes), bool(rung.reach.to))
        for rung in ladder.rungs
    ]
