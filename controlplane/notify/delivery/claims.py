"""Claims of messages for one attempt to send them, and the recording of the attempts' outcomes.

A claim locks the destination's `Pace` row, which holds its rate limit, so that claims of one
destination run one at a time. Rate limits, the order within a subject, and digests rely on this.
The `Pace` row is locked before messages.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Case, F, Min, Q, QuerySet, When
from django.db.models.expressions import Combinable

from controlplane.core.clock import db_now
from controlplane.core.message_templates import MESSAGE_TEMPLATES, events_where
from controlplane.core.outbox.models import Attempt, OutboxMessage, Pace
from controlplane.core.scopes import global_switch_id
from controlplane.notify.transports import destinations, rate_limits

from . import digests, obsolete_updates

LEASE_SECONDS = 30.0
MAX_ATTEMPTS = 8
LOOK_AFTER_SECONDS = 3.0
AHEAD = timedelta(seconds=5)
"""Tolerance for future creation times; beyond it, the clock must have been set back."""


@dataclass(frozen=True)
class ClaimedMessage:
    """A message leased for one attempt; `attempt` is the number of that attempt, from 1.

    `waited` is the time from its creation to the lease. `doubtful_since` is the start of the first
    attempt that may have been delivered, if any.
    """

    message: OutboxMessage
    attempt: int
    doubtful_since: datetime | None = None
    waited: timedelta = timedelta(0)

    @property
    def is_fleeting(self) -> bool:
        """True if the message is useless later, so that it is discarded at once if it fails."""
        template = MESSAGE_TEMPLATES.get(self.message.event)
        return template is not None and template.is_ephemeral


@dataclass(frozen=True)
class AttemptOutcome:
    """The outcome of an attempt to send a message; `reason` is empty if it was sent.

    `pause_seconds` is the wait before a retry, or None if there is no retry. For
    `keep_away_seconds` no message may be sent to the destination. `in_doubt` is True if the message
    may have been delivered, and `counts` if the attempt counts toward `MAX_ATTEMPTS`. `note` is a
    remark on a sent message.
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


def due_messages(now: datetime, destination: str | None = None) -> QuerySet[OutboxMessage]:
    """Return the messages that may be sent now, to one destination if given.

    A message is not due while an earlier message about its subject is pending. If the clock was set
    back, leases with an end too far ahead count as expired, and messages from the future as due.
    """
    free = Q(lease_until__isnull=True) | _is_lease_over(now)
    pending = OutboxMessage.objects.filter(state="pending")
    if destination is not None:
        pending = pending.filter(destination=destination)
    # The first pending message per destination and subject. Members of a digest block no other
    # message, because the digest may wait. This is one aggregate query, because comparing each
    # message with its predecessors takes minutes for many messages.
    holding = pending.filter(~digests.IN_DIGEST | Q(lease_until__lte=now)).exclude(subject="")
    firsts = holding.order_by().values("destination", "subject").annotate(first=Min("id"))
    return pending.filter(
        free,
        Q(next_attempt_at__lte=now) | Q(created_at__gt=now + AHEAD),
        Q(subject="") | Q(pk__in=firsts.values("first")),
        attempts__lt=MAX_ATTEMPTS,
    )


def unsent_messages(now: datetime | Combinable) -> QuerySet[OutboxMessage]:
    """Return the pending messages whose time to send has come, or whose lease has expired.

    Unlike :func:`due_messages`, includes those that wait for an earlier one about their subject.
    """
    is_due = Q(next_attempt_at__lte=now) | Q(created_at__gt=now + AHEAD) | _is_lease_over(now)
    return OutboxMessage.objects.filter(is_due, state="pending")


def due_destinations(now: datetime) -> list[str]:
    """Return the destinations with due messages, longest waiting first, except paused ones."""
    alone = paused_destinations(now).values("destination")
    waiting = due_messages(now).exclude(destination__in=alone).values("destination")
    longest_first = waiting.annotate(since=Min("next_attempt_at")).order_by("since", "destination")
    return list(longest_first.values_list("destination", flat=True))


def paused_destinations(now: datetime) -> QuerySet[Pace]:
    """Return the `Pace` rows of destinations that a `Retry-After` pauses until after `now`."""
    latest = now + rate_limits.MAX_KEEP_AWAY
    return Pace.objects.filter(keep_away_until__gt=now, keep_away_until__lte=latest)


@transaction.atomic
def claim_exhausted(now: datetime) -> list[ClaimedMessage]:
    """Return the messages whose sender died in the last allowed attempt, to be recorded as failed.

    Their fence is raised, so that the former sender can't record an outcome any more.
    """
    dead = OutboxMessage.objects.filter(
        _is_lease_over(now), state="pending", attempts__gte=MAX_ATTEMPTS
    )
    messages = list(dead.select_for_update(skip_locked=True).order_by("id"))
    for message in messages:
        message.fence += 1
    OutboxMessage.objects.bulk_update(messages, ["fence"])
    return [ClaimedMessage(message, message.tries.count()) for message in messages]


@transaction.atomic
def claim_message(destination: str) -> ClaimedMessage | float | None:
    """Lease and return the next due message of a destination: the most urgent, longest waiting one.

    If the rate limit is reached, return the seconds to wait; if no message is due, None. Updates
    made obsolete by a later message are skipped.
    """
    pace = _lock_pace(destination)
    now = db_now()
    if not due_messages(now, destination).exists():
        return None
    limit = destinations.limit_for(destination)
    wait = rate_limits.wait_seconds(limit, pace.paced_until, now)
    if (until := rate_limits.keep_away_until(pace.keep_away_until, now)) is not None:
        wait = max(wait, (until - now).total_seconds())
    if wait > 0:
        return wait
    message = digests.create_digest(destination, now) or _longest_waiting(destination, now)
    while message is not None and obsolete_updates.skip_obsolete(message, now):
        message = _longest_waiting(destination, now)
    if message is None:
        return None
    pace.paced_until = rate_limits.advance(limit, pace.paced_until, now)
    pace.save(update_fields=["paced_until"])
    return _lease_message(message, now)


@transaction.atomic
def record_outcome(claimed: ClaimedMessage, outcome: AttemptOutcome) -> bool:
    """Record the outcome of an attempt in the message's row, and return True.

    Return False and leave the message unchanged if another sender has leased it since.
    """
    message = claimed.message
    if outcome.keep_away_seconds:
        pace = _lock_pace(message.destination)
        now = db_now()
        until = now + timedelta(seconds=outcome.keep_away_seconds)
        former = rate_limits.keep_away_until(pace.keep_away_until, now)
        pace.keep_away_until = max(former or until, until)
        pace.save(update_fields=["keep_away_until"])
    now = db_now()
    has_failed = outcome.state == OutboxMessage.State.FAILED
    pause = outcome.pause_seconds or 0.0
    if outcome.in_doubt:  # Wait until a lookup can find the message.
        pause = max(pause, LOOK_AFTER_SECONDS)
    held = OutboxMessage.objects.filter(pk=message.pk, fence=message.fence, state="pending")
    recorded = held.update(
        state=outcome.state,
        attempts=F("attempts") - (0 if outcome.counts else 1),
        last_error=outcome.reason,
        lease_until=None,
        next_attempt_at=now + timedelta(seconds=pause),
        finished_at=None if outcome.state == OutboxMessage.State.PENDING else now,
        discarded_at=now if claimed.is_fleeting and has_failed else None,
    )
    Attempt.objects.filter(message=message, number=claimed.attempt, outcome="started").update(
        outcome=outcome.of_attempt, finished_at=now, error=outcome.reason or outcome.note
    )
    if recorded:
        digests.end_members(message, outcome.state, outcome.reason, now)
    return bool(recorded)


def _is_lease_over(now: datetime | Combinable) -> Q:
    """Return a filter for leases that are over: expired, or taken before the clock was set back."""
    longest = now + timedelta(seconds=LEASE_SECONDS)
    return Q(lease_until__lte=now) | Q(lease_until__gt=longest, attempts__gt=0)


def _lock_pace(destination: str) -> Pace:
    locked = Pace.objects.select_for_update().filter(pk=destination)
    if (pace := locked.first()) is not None:
        return pace
    first = Pace(destination=destination, paced_until=db_now())
    Pace.objects.bulk_create([first], ignore_conflicts=True)
    return locked.get()


def _longest_waiting(destination: str, now: datetime) -> OutboxMessage | None:
    """Lock and return the destination's most urgent due message, of those the longest waiting.

    A message is as urgent as the most urgent message about its subject that waits for it.
    """
    waiting = due_messages(now, destination).select_for_update(skip_locked=True)
    pending = OutboxMessage.objects.filter(destination=destination, state="pending")
    subjects = pending.exclude(subject="").values("subject")
    # Urgent by template, or about the global switch. Severity is not enough: during an incident,
    # thousands of critical messages may wait.
    called = events_where(lambda template: template.is_urgent)
    urgent = Q(event__in=called) | Q(payload__switch=global_switch_id())
    critical = Q(severity="critical")
    urgency = Case(
        When(urgent | Q(subject__in=subjects.filter(urgent)), then=0),
        When(critical | Q(subject__in=subjects.filter(critical)), then=1),
        default=2,
    )
    return waiting.order_by(urgency, "next_attempt_at", "id").first()


def _lease_message(message: OutboxMessage, now: datetime) -> ClaimedMessage:
    message.lease_until = now + timedelta(seconds=LEASE_SECONDS)
    message.fence += 1
    message.attempts += 1
    message.save(update_fields=["lease_until", "fence", "attempts"])
    tries = list(message.tries.order_by("number"))
    in_doubt = [one.started_at for one in tries if one.outcome != Attempt.Outcome.REFUSED]
    number = tries[-1].number + 1 if tries else 1
    Attempt.objects.create(message=message, number=number, started_at=now)
    doubtful_since = in_doubt[0] if in_doubt else None
    return ClaimedMessage(message, number, doubtful_since, now - message.created_at)
