"""Claim a message for an attempt and record its result, in two short transactions.

A claim holds the destination's `Pace` row, so claims of one destination run one at a time: rate
limit, order within a subject and digests need no other lock. Lock order: `Pace`, then messages.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Case, F, Min, Q, QuerySet, When
from django.db.models.expressions import Combinable

from controlplane.core.clock import db_now
from controlplane.core.message_templates import MESSAGE_TEMPLATES, events_where
from controlplane.core.outbox.models import Attempt, OutboxMessage, Pace
from controlplane.core.scopes import global_switch_id
from controlplane.notify.transports import pacing, registry

from . import digests, superseding

LEASE_SECONDS = 30.0
MAX_ATTEMPTS = 8
LOOK_AFTER_SECONDS = 3.0
AHEAD = timedelta(seconds=5)
"""Messages created further in the future date from before the clock was set back."""

CRITICAL = Q(severity="critical")


@dataclass(frozen=True)
class Claim:
    """A message leased for one attempt, `waited` after it was created.

    `doubtful_since` is the start of the first attempt that may have been delivered, if any.
    """

    message: OutboxMessage
    attempt: int
    doubtful_since: datetime | None = None
    waited: timedelta = timedelta(0)

    @property
    def is_fleeting(self) -> bool:
        """Return whether a failed message is discarded at once, by its template."""
        template = MESSAGE_TEMPLATES.get(self.message.event)
        return template is not None and template.is_ephemeral


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt: a `reason` unless sent, and a pause in seconds if it is retried.

    `keep_away_seconds`: no message may be sent to the destination for so long. `in_doubt`: the
    message may have been delivered. `counts`: the attempt counts toward the maximum. `note`: remark
    on a message that was sent.
    """

    reason: str = ""
    pause_seconds: float | None = None
    keep_away_seconds: float = 0.0
    in_doubt: bool = False
    counts: bool = True
    note: str = ""

    @property
    def state(self) -> str:
        if not self.reason:
            return OutboxMessage.State.SENT
        if self.pause_seconds is None:
            return OutboxMessage.State.FAILED
        return OutboxMessage.State.PENDING

    @property
    def of_attempt(self) -> str:
        if not self.reason:
            return Attempt.Outcome.SENT
        return Attempt.Outcome.UNKNOWN if self.in_doubt else Attempt.Outcome.REFUSED


def due(now: datetime, destination: str | None = None) -> QuerySet[OutboxMessage]:
    """Return the messages that are due, of one destination if given.

    A message waits for an earlier pending one about the same subject. After the clock was set back,
    overlong leases count as expired and messages from the future as due.
    """
    free = Q(lease_until__isnull=True) | _is_over(now)
    pending = OutboxMessage.objects.filter(state="pending")
    if destination is not None:
        pending = pending.filter(destination=destination)
    return pending.filter(
        free,
        Q(next_attempt_at__lte=now) | Q(created_at__gt=now + AHEAD),
        Q(subject="") | Q(pk__in=_first_of_subjects(pending, now)),
        attempts__lt=MAX_ATTEMPTS,
    )


def unsent(now: datetime | Combinable) -> QuerySet[OutboxMessage]:
    """Return the messages that :func:`due` and :func:`exhausted` choose from, blocked or not.

    `now` may be a query expression.
    """
    is_due = Q(next_attempt_at__lte=now) | Q(created_at__gt=now + AHEAD) | _is_over(now)
    return OutboxMessage.objects.filter(is_due, state="pending")


def destinations(now: datetime) -> list[str]:
    """Return destinations with due messages, longest waiting first.

    Destinations to keep away from are left out.
    """
    alone = kept_away(now).values("destination")
    waiting = due(now).exclude(destination__in=alone).values("destination")
    longest_first = waiting.annotate(since=Min("next_attempt_at")).order_by("since", "destination")
    return list(longest_first.values_list("destination", flat=True))


def kept_away(now: datetime) -> QuerySet[Pace]:
    """Return the destinations to keep away from; see :func:`pacing.keep_away_until`."""
    latest = now + pacing.MAX_KEEP_AWAY
    return Pace.objects.filter(keep_away_until__gt=now, keep_away_until__lte=latest)


@transaction.atomic
def exhausted(now: datetime) -> list[Claim]:
    """Claim the messages whose sender died in their last attempt, by raising their fence."""
    dead = OutboxMessage.objects.filter(_is_over(now), state="pending", attempts__gte=MAX_ATTEMPTS)
    messages = list(dead.select_for_update(skip_locked=True).order_by("id"))
    for message in messages:
        message.fence += 1
    OutboxMessage.objects.bulk_update(messages, ["fence"])
    return [Claim(message, message.tries.count()) for message in messages]


@transaction.atomic
def claim(destination: str) -> Claim | float | None:
    """Lease the most urgent, longest waiting message of a destination, and start its attempt.

    Updates that a later message makes obsolete are skipped. Returns the seconds to wait if the rate
    limit is reached, and None if nothing is due.
    """
    pace = _pace(destination)
    now = db_now()
    if not due(now, destination).exists():
        return None
    limit = registry.limit_for(destination)
    wait = pacing.wait_seconds(limit, pace.paced_until, now)
    if (until := pacing.keep_away_until(pace.keep_away_until, now)) is not None:
        wait = max(wait, (until - now).total_seconds())
    if wait > 0:
        return wait
    message = digests.gather(destination, now) or _longest_waiting(destination, now)
    while message is not None and superseding.supersede(message, now):
        message = _longest_waiting(destination, now)
    if message is None:
        return None
    pace.paced_until = pacing.advanced(limit, pace.paced_until, now)
    pace.save(update_fields=["paced_until"])
    return _lease(message, now)


@transaction.atomic
def record(claimed: Claim, outcome: Outcome) -> bool:
    """Record the result of an attempt; return False if the lease was lost to another sender.

    The message is updated only if its fence is unchanged, the attempt in any case.
    """
    message = claimed.message
    if outcome.keep_away_seconds:
        _keep_away(message.destination, outcome.keep_away_seconds)
    now = db_now()
    has_failed = outcome.state == OutboxMessage.State.FAILED
    held = OutboxMessage.objects.filter(pk=message.pk, fence=message.fence, state="pending")
    recorded = held.update(
        state=outcome.state,
        attempts=F("attempts") - (0 if outcome.counts else 1),
        last_error=outcome.reason,
        lease_until=None,
        next_attempt_at=now + timedelta(seconds=_pause(outcome)),
        finished_at=None if outcome.state == OutboxMessage.State.PENDING else now,
        discarded_at=now if claimed.is_fleeting and has_failed else None,
    )
    Attempt.objects.filter(message=message, number=claimed.attempt, outcome="started").update(
        outcome=outcome.of_attempt, finished_at=now, error=outcome.reason or outcome.note
    )
    if recorded:
        digests.end_members(message, outcome.state, outcome.reason, now)
    return bool(recorded)


def _is_over(now: datetime | Combinable) -> Q:
    """Match leases that expired or were taken before the clock was set back.

    Members of a digest have a longer lease, without an attempt.
    """
    longest = now + timedelta(seconds=LEASE_SECONDS)
    return Q(lease_until__lte=now) | Q(lease_until__gt=longest, attempts__gt=0)


def _first_of_subjects(pending: QuerySet[OutboxMessage], now: datetime) -> QuerySet[Any, Any]:
    """Return the ids of the first pending message of each subject and destination.

    Members of a digest block nothing, because the digest may wait. This is one aggregate: comparing
    each message with its predecessors takes minutes with many messages and no planner statistics.
    """
    holding = pending.filter(~digests.TOLD_BY_ONE | Q(lease_until__lte=now)).exclude(subject="")
    firsts = holding.order_by().values("destination", "subject").annotate(first=Min("id"))
    return firsts.values("first")


def _pace(destination: str) -> Pace:
    """Return the destination's `Pace` row, locked; create it if absent."""
    locked = Pace.objects.select_for_update().filter(pk=destination)
    pace = locked.first()
    if pace is None:
        first = Pace(destination=destination, paced_until=db_now())
        Pace.objects.bulk_create([first], ignore_conflicts=True)
        pace = locked.get()
    return pace


def _keep_away(destination: str, seconds: float) -> None:
    pace = _pace(destination)
    now = db_now()
    until = now + timedelta(seconds=seconds)
    pace.keep_away_until = max(pacing.keep_away_until(pace.keep_away_until, now) or until, until)
    pace.save(update_fields=["keep_away_until"])


def _longest_waiting(destination: str, now: datetime) -> OutboxMessage | None:
    """Return the next due message by urgency, then waiting time, locked.

    A message that an urgent one of the same subject waits for is as urgent.
    """
    waiting = due(now, destination).select_for_update(skip_locked=True)
    pending = OutboxMessage.objects.filter(destination=destination, state="pending")
    subjects = pending.exclude(subject="").values("subject")
    urgent = _urgent()
    urgency = Case(
        When(urgent | Q(subject__in=subjects.filter(urgent)), then=0),
        When(CRITICAL | Q(subject__in=subjects.filter(CRITICAL)), then=1),
        default=2,
    )
    return waiting.order_by(urgency, "next_attempt_at", "id").first()


def _urgent() -> Q:
    """Match messages that call people, or report that everything is stopped.

    During an incident every engagement is critical; these must not queue behind thousands of them.
    """
    called = events_where(lambda template: template.is_urgent)
    return Q(event__in=called) | Q(payload__switch=global_switch_id())


def _lease(message: OutboxMessage, now: datetime) -> Claim:
    message.lease_until = now + timedelta(seconds=LEASE_SECONDS)
    message.fence += 1
    message.attempts += 1
    message.save(update_fields=["lease_until", "fence", "attempts"])
    tries = list(message.tries.order_by("number"))
    in_doubt = [one.started_at for one in tries if one.outcome != Attempt.Outcome.REFUSED]
    number = tries[-1].number + 1 if tries else 1
    Attempt.objects.create(message=message, number=number, started_at=now)
    doubtful_since = in_doubt[0] if in_doubt else None
    return Claim(message, number, doubtful_since, now - message.created_at)


def _pause(outcome: Outcome) -> float:
    """Return the seconds until the next attempt.

    After a doubtful attempt at least `LOOK_AFTER_SECONDS`, so that the message can be found.
    """
    pause = outcome.pause_seconds or 0.0
    return max(pause, LOOK_AFTER_SECONDS) if outcome.in_doubt else pause
