"""Delivering the outbox: every destination has a sender of its own, so none delays another.

A row is claimed in a short transaction (lease, fence, attempt), sent outside of any, and the
result is recorded only by whoever still holds the fence. A sender that dies leaves a row that
is claimed again once its lease is over.
"""

import random
import threading
import time
import traceback
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q, QuerySet

from controlplane.core import threads
from controlplane.core.clock import db_now
from controlplane.core.outbox import transports
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.transports.failures import PermanentFailure, TransientFailure

LEASE_SECONDS = 30.0
MOST_ATTEMPTS = 8
FIRST_PAUSE_SECONDS = 2.0
PAUSE_GROWS_BY = 3.0
BUDGET_SECONDS = 20.0
RECORD_AGAIN_SECONDS = 0.5

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: a reason unless sent; a pause in seconds if it is worth another try.

    `keep_away_seconds`: the destination wants to be left alone by every message.
    """

    reason: str = ""
    pause_seconds: float | None = None
    keep_away_seconds: float = 0.0

    @property
    def state(self) -> str:
        if not self.reason:
            return OutboxMessage.State.SENT
        if self.pause_seconds is None:
            return OutboxMessage.State.FAILED
        return OutboxMessage.State.PENDING


def sweep(now: datetime) -> int:
    """Start a sender for every destination that has due messages and none here yet.

    Does not wait for them. Returns how many were started.
    """
    for message in _exhausted(now):
        _record(message, Outcome("the sender died during the last attempt; it may have arrived"))
    waiting = _due(now).order_by("destination").values_list("destination", flat=True).distinct()
    return sum(_senders.start(destination) for destination in waiting)


def finish(seconds: float) -> bool:
    """Let the senders end their present message, for at most so long. True if all did."""
    return _senders.finish(seconds)


def backoff_seconds(attempts: int, draw: float) -> float:
    """Full jitter: anything between nothing and an exponentially growing ceiling.

    `draw` is uniform in [0, 1). After Brooker, "Exponential Backoff And Jitter" (2015). With 8
    attempts the ceilings add up to 36 minutes.
    """
    return float(draw * FIRST_PAUSE_SECONDS * PAUSE_GROWS_BY ** (attempts - 1))


class Senders:
    """At most one sender a destination in this process; other processes have theirs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self._ending = threading.Event()

    def start(self, destination: str) -> bool:
        with self._lock:
            if destination in self._threads or self._ending.is_set():
                return False
            thread = threading.Thread(
                target=self._run, args=(destination,), daemon=True, name=f"outbox:{destination}"
            )
            self._threads[destination] = thread
        thread.start()
        return True

    def finish(self, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        self._ending.set()
        with self._lock:
            running = list(self._threads.values())
        for thread in running:
            thread.join(max(0.0, ends - time.monotonic()))
        return not any(thread.is_alive() for thread in running)

    def _run(self, destination: str) -> None:
        ends = time.monotonic() + BUDGET_SECONDS
        try:
            with threads.own_connection():
                while not self._ending.is_set() and time.monotonic() < ends:
                    message = _claim(destination)
                    if message is None:
                        break
                    _record(message, _attempt(message))
        except (OperationalError, InterfaceError) as error:
            log.warning("outbox.postponed", destination=destination, error=str(error).strip())
        except Exception:
            log.exception("outbox.sender_failed", destination=destination)
        finally:
            with self._lock:
                del self._threads[destination]


_senders = Senders()


def _due(now: datetime) -> QuerySet[OutboxMessage]:
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
    return OutboxMessage.objects.filter(
        free, state="pending", next_attempt_at__lte=now, attempts__lt=MOST_ATTEMPTS
    )


def _exhausted(now: datetime) -> QuerySet[OutboxMessage]:
    return OutboxMessage.objects.filter(
        state="pending", attempts__gte=MOST_ATTEMPTS, lease_until__lte=now
    )


@transaction.atomic
def _claim(destination: str) -> OutboxMessage | None:
    """The message that waited longest, leased to us; None if none is due and free."""
    now = db_now()
    message = (
        _due(now)
        .filter(destination=destination)
        .select_for_update(skip_locked=True)
        .order_by("next_attempt_at", "id")
        .first()
    )
    if message is None:
        return None
    message.lease_until = now + timedelta(seconds=LEASE_SECONDS)
    message.fence += 1
    message.attempts += 1
    message.save(update_fields=["lease_until", "fence", "attempts"])
    return message


def _attempt(message: OutboxMessage) -> Outcome:
    try:
        transports.send(message)
    except PermanentFailure as failure:
        return Outcome(transports.redact(failure.reason))
    except TransientFailure as failure:
        return _again(message, failure.reason, failure.retry_after_seconds)
    except Exception as error:
        log.error(
            "outbox.transport_broke",
            destination=message.destination,
            traceback=transports.redact(traceback.format_exc()),
        )
        return _again(message, f"the transport broke ({type(error).__name__})", None)
    return Outcome()


def _again(message: OutboxMessage, reason: str, retry_after: float | None) -> Outcome:
    reason, keep_away = transports.redact(reason), retry_after or 0.0
    if message.attempts >= MOST_ATTEMPTS:
        return Outcome(f"{reason} (attempt {message.attempts}, the last)", None, keep_away)
    if retry_after is not None:
        return Outcome(reason, retry_after, keep_away)
    return Outcome(reason, backoff_seconds(message.attempts, random.random()))  # noqa: S311


def _record(message: OutboxMessage, outcome: Outcome) -> None:
    """Write down how it went, as long as the lease lasts: what is not recorded is sent again."""
    ends = time.monotonic() + LEASE_SECONDS - 5
    while True:
        try:
            recorded = _write(message, outcome)
        except (OperationalError, InterfaceError):
            threads.forget_connection()
            if time.monotonic() > ends:
                raise
            time.sleep(RECORD_AGAIN_SECONDS)
        else:
            _tell(message, outcome, recorded)
            return


@transaction.atomic
def _write(message: OutboxMessage, outcome: Outcome) -> bool:
    """Compare and set on the fence; False if the lease was lost to another sender."""
    now = db_now()
    next_attempt_at = now + timedelta(seconds=outcome.pause_seconds or 0)
    held = OutboxMessage.objects.filter(pk=message.pk, fence=message.fence, state="pending")
    recorded = held.update(
        state=outcome.state,
        last_error=outcome.reason,
        lease_until=None,
        next_attempt_at=next_attempt_at,
        finished_at=None if outcome.state == OutboxMessage.State.PENDING else now,
    )
    if outcome.keep_away_seconds:
        until = now + timedelta(seconds=outcome.keep_away_seconds)
        OutboxMessage.objects.filter(
            destination=message.destination, state="pending", next_attempt_at__lt=until
        ).update(next_attempt_at=until)
    return bool(recorded)


def _tell(message: OutboxMessage, outcome: Outcome, recorded: bool) -> None:
    told = {
        "message_id": message.pk,
        "event_name": message.event,
        "destination": message.destination,
        "attempt": message.attempts,
    }
    if not recorded:
        log.warning("outbox.lease_lost", **told)
    elif outcome.state == OutboxMessage.State.FAILED:
        log.error("outbox.failed", reason=outcome.reason, **told)
    elif outcome.reason:
        log.warning(
            "outbox.postponed", reason=outcome.reason, pause_seconds=outcome.pause_seconds, **told
        )
