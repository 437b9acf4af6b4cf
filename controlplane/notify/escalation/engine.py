"""The tick of escalations: claim what is due, decide, notify, and save the new state."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
from controlplane.notify.targets import reach
from controlplane.notify.targets.reach import Rung
from controlplane.notify.transports import registry

from . import messages, schedule

log = structlog.get_logger(__name__)

TURN_LOCK = 0x35CA1A7E  # arbitrary, unique among advisory locks
MAX_AT_ONCE = 1000
MAX_APART = 3  # More than these for one destination are sent as one message.

CHANGED = ("facts", "step", "next_at", "notices", "notified_at")
STEP, LISTING, ROUTES = "escalation.step", "escalation.listing", ""


@dataclass(frozen=True)
class Told:
    """An escalation with its verdict and destinations; without any, the routes are used."""

    escalation: Escalation
    verdict: schedule.Verdict
    ladder: Sequence[Rung]
    destinations: tuple[str, ...]


def pending(now: datetime | Combinable) -> QuerySet[Escalation]:
    """Return the open escalations whose next step is due; `now` may be a query expression."""
    return Escalation.objects.filter(closed_at=None, next_at__lte=now)


@transaction.atomic
def advance(now: datetime) -> int:
    """Notify what is due; return the number of escalations.

    Does nothing if another run is active.
    """
    if not _is_our_turn():
        return 0
    found = _due(now)
    if not found:
        return 0
    ladders = reach.ladders(SEVERITIES, now)
    due = [told for one in found if (told := _judged(one, ladders, now))]
    # Only repeats bring others forward: steps come at any time and would keep them from aligning.
    if any(told.verdict.kind != "step" for told in due):
        due += _along(ladders, now)
    _announce(due, now)
    _write_down(due, now)
    return len(due)


def _is_our_turn() -> bool:
    """Try to take the transaction's advisory lock; return False if another run holds it.

    With one run at a time, escalations that are due together share a message.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [TURN_LOCK])
        return bool(cursor.fetchone()[0])


def _due(now: datetime) -> list[Escalation]:
    due = pending(now).select_for_update(skip_locked=True).order_by("next_at", "id")
    return list(due[:MAX_AT_ONCE])


def _judged(
    escalation: Escalation, ladders: Mapping[str, Sequence[Rung]], now: datetime
) -> Told | None:
    """Return the notification due, or save when to check next and return None."""
    ladder = ladders[escalation.severity]
    verdict = schedule.judge(standing(escalation), steps(ladder), now)
    if verdict.kind is not None:
        return _told(escalation, verdict, ladder)
    escalation.step, escalation.next_at = verdict.step, verdict.next_at
    escalation.save(update_fields=["step", "next_at"])
    return None


def _along(ladders: Mapping[str, Sequence[Rung]], now: datetime) -> list[Told]:
    """Return repeats and reminders that are due soon, to be sent with those due now."""
    rows = Escalation.objects.select_for_update(skip_locked=True)
    soon = rows.filter(
        Q(acknowledged_at=None, next_at__lte=now + schedule.TAKEN_ALONG)
        | Q(acknowledged_at__isnull=False, next_at__lte=now + schedule.REMINDER_TAKEN_ALONG),
        closed_at=None,
        next_at__gt=now,
        notified_at__isnull=False,
    )
    found = []
    for one in soon.order_by("next_at", "id")[:MAX_AT_ONCE]:
        ladder, stands = ladders[one.severity], standing(one)
        ripe = one.next_at is not None and schedule.along(stands, now, one.next_at)
        if ripe and schedule.repeats(stands, steps(ladder)):
            found.append(_told(one, schedule.repeat_now(stands, steps(ladder), now), ladder))
    return found


def _told(escalation: Escalation, verdict: schedule.Verdict, ladder: Sequence[Rung]) -> Told:
    to = [destination for index in verdict.told for destination in ladder[index].reach.to]
    return Told(escalation, verdict, ladder, tuple(dict.fromkeys(to)))


def _announce(due: Sequence[Told], now: datetime) -> None:
    """Send one message per escalation, or a list to destinations with more than `MAX_APART`."""
    by_destination: dict[str, list[Told]] = defaultdict(list)
    for told in due:
        for destination in told.destinations or (ROUTES,):
            by_destination[destination].append(told)
    apart: dict[int, list[str]] = defaultdict(list)
    for destination, here in by_destination.items():
        if len(here) > MAX_APART and not registry.tracks_incidents(destination):
            _list(here, destination, now)
        else:
            for told in here:
                apart[told.escalation.pk].append(destination)
    for told in due:
        if told.escalation.pk in apart:
            _tell(told, apart[told.escalation.pk], now)


def _tell(told: Told, destinations: Sequence[str], now: datetime) -> None:
    one = told.escalation
    outbox.announce(
        event=STEP,
        event_key=f"escalation:{one.pk}:{one.notices + 1}",
        facts=messages.facts(one, told.verdict, told.ladder, now),
        scope=one.scope,
        severity=one.severity,
        subject=one.subject,
        to=None if ROUTES in destinations else destinations,
        now=now,
    )


def _list(here: Sequence[Told], destination: str, now: datetime) -> None:
    escalations = [told.escalation for told in here]
    outbox.announce(
        event=LISTING,
        event_key=f"escalations:{_digest(escalations)}",
        facts=messages.listing(escalations),
        severity=_worst(one.severity for one in escalations),
        to=None if destination == ROUTES else [destination],
        now=now,
    )


def _write_down(due: Sequence[Told], now: datetime) -> None:
    for told in due:
        one, verdict = told.escalation, told.verdict
        one.facts = messages.remember(one, verdict, told.ladder, now)
        one.step, one.next_at = verdict.step, verdict.next_at
        one.notices += 1
        one.notified_at = now
    Escalation.objects.bulk_update([told.escalation for told in due], CHANGED)
    if due:
        kinds = Counter(str(told.verdict.kind) for told in due)
        log.info("escalation.told", escalations=len(due), **kinds)


def standing(escalation: Escalation) -> schedule.Standing:
    return schedule.Standing(
        severity=escalation.severity,
        opened_at=escalation.opened_at,
        step=escalation.step,
        reached=bool(escalation.facts.get(summaries.NOTIFIED)),
        notified_at=escalation.notified_at,
        acknowledged_at=escalation.acknowledged_at,
    )


def steps(ladder: Sequence[Rung]) -> list[schedule.Step]:
    return [
        schedule.Step(timedelta(minutes=rung.step.after_minutes), bool(rung.reach.to))
        for rung in ladder
    ]


def _digest(escalations: Sequence[Escalation]) -> str:
    """Return a digest that identifies the next notices of these escalations."""
    named = ",".join(sorted(f"{one.pk}.{one.notices + 1}" for one in escalations))
    return sha256(named.encode()).hexdigest()[:40]


def _worst(severities: Iterable[str]) -> str:
    return min(severities, key=SEVERITIES.index)
