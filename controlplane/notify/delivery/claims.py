"""Taking a message to be sent, and writing down how that went: the two short transactions.

Whoever claims holds the destination's row of `Pace` for that moment, so claims of one destination
follow each other: pace, order within a subject and the storm guard need no other lock. Locks are
taken in the order pace → message.
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
from controlplane.core.scopes import everything_id
from controlplane.notify.transports import pacing, registry

from . import digests, superseding

LEASE_SECONDS = 30.0
MAX_ATTEMPTS = 8
LOOK_AFTER_SECONDS = 3.0
AHEAD = timedelta(seconds=5)
"""A message created later than this from now is from before the clock was set back."""

CRITICAL = Q(severity="critical")


@dataclass(frozen=True)
class Claim:
    """A message leased to us for one attempt, `waited` after it was written.

    `doubtful_since`: when the first attempt began of which nobody knows that it failed.
    """

    message: OutboxMessage
    attempt: int
    doubtful_since: datetime | None = None
    waited: timedelta = timedelta(0)

    @property
    def is_fleeting(self) -> bool:
        """Whether nobody misses it once it is given up."""
        template = MESSAGE_TEMPLATES.get(self.message.event)
        return template is not None and template.is_ephemeral


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: a reason unless sent; a pause in seconds if it is worth another try.

    `keep_away_seconds`: the destination wants to be left alone by every message. `in_doubt`: it
    may have arrived. `counts`: whether this is one of the attempts that a message has. `note`:
    what is to be known of a message that was sent.
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
    """Messages that are due, unless an earlier message about the same subject is pending; those of
    one destination if it is given.

    After the clock was set back, overlong leases count as over and messages from the future as due.
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
    """Return the messages that :func:`due` and :func:`exhausted` choose from, held up or not.

    `now` may be a query expression.
    """
    is_due = Q(next_attempt_at__lte=now) | Q(created_at__gt=now + AHEAD) | _is_over(now)
    return OutboxMessage.objects.filter(is_due, state="pending")


def destinations(now: datetime) -> list[str]:
    """Every destination with something due that does not want to be left alone."""
    alone = kept_away(now).values("destination")
    waiting = due(now).exclude(destination__in=alone).values("destination")
    longest_first = waiting.annotate(since=Min("next_attempt_at")).order_by("since", "destination")
    return list(longest_first.values_list("destination", flat=True))


def kept_away(now: datetime) -> QuerySet[Pace]:
    """Return the destinations that want to be left alone; see :func:`pacing.keep_away_until`."""
    latest = now + pacing.MAX_KEEP_AWAY
    return Pace.objects.filter(keep_away_until__gt=now, keep_away_until__lte=latest)


@transaction.atomic
def exhausted(now: datetime) -> list[Claim]:
    """Messages whose sender died in the last attempt they had; ours from now on, by the fence."""
    dead = OutboxMessage.objects.filter(_is_over(now), state="pending", attempts__gte=MAX_ATTEMPTS)
    messages = list(dead.select_for_update(skip_locked=True).order_by("id"))
    for message in messages:
        message.fence += 1
    OutboxMessage.objects.bulk_update(messages, ["fence"])
    return [Claim(message, message.tries.count()) for message in messages]


@transaction.atomic
def claim(destination: str) -> Claim | float | None:
    """The message that waited longest, of the most urgent ones, leased, with its attempt begun.

    Updates that a later message makes obsolete are left out. Returns a number of
    seconds if the destination's pace has to be waited for; None if nothing is due.
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
    """Compare and set on the fence; False if the lease was lost to another sender.

    The attempt is ours either way: how it ended is worth knowing.
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

    Members of a digest are leased for longer, without an attempt.
    """
    longest = now + timedelta(seconds=LEASE_SECONDS)
    return Q(lease_until__lte=now) | Q(lease_until__gt=longest, attempts__gt=0)


def _first_of_subjects(pending: QuerySet[OutboxMessage], now: datetime) -> QuerySet[Any, Any]:
    """Return the ids of what has to arrive first. What is told by a digest holds up nothing: the
    digest may wait.

    One aggregate: a look at each message's predecessors takes minutes in a storm that the planner
    has no statistics of.
    """
    holding = pending.filter(~digests.TOLD_BY_ONE | Q(lease_until__lte=now)).exclude(subject="")
    firsts = holding.order_by().values("destination", "subject").annotate(first=Min("id"))
    return firsts.values("first")


def _pace(destination: str) -> Pace:
    """The destination's pace, locked."""
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
    """Return the first message by urgency and waiting time: thousands of updates may wait.

    What an urgent message of the same subject has to wait for is as urgent.
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

    In a storm every engagement is critical; urgent messages don't wait behind thousands of them.
    """
    called = events_where(lambda template: template.is_urgent)
    return Q(event__in=called) | Q(payload__switch=everything_id())


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
    """In doubt, what was sent gets a moment to appear before it is looked for."""
    pause = outcome.pause_seconds or 0.0
    return max(pause, LOOK_AFTER_SECONDS) if outcome.in_doubt else pause
