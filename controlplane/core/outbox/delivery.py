"""Delivering the outbox: every destination has a sender of its own, so none delays another.

A row is claimed in a short transaction (lease, fence, attempt), sent outside of any, and the
result is recorded only by whoever still holds the fence. A sender that dies leaves a row that
is claimed again once its lease is over. What may have arrived is looked for before it is sent
again.
"""

import random
import threading
import time
import traceback
from datetime import datetime

import structlog
from django.db import InterfaceError, OperationalError

from controlplane.core import threads
from controlplane.core.outbox import claims, transports, wordings
from controlplane.core.outbox.claims import LEASE_SECONDS, MOST_ATTEMPTS, Claim, Outcome
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.transports.failures import PermanentFailure, TransientFailure

FIRST_PAUSE_SECONDS = 2.0
PAUSE_GROWS_BY = 3.0
BUDGET_SECONDS = 20.0
RECORD_AGAIN_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 2.0
"""A sender waits so long for its destination's pace, else it leaves the rest to a later sweep."""

log = structlog.get_logger(__name__)


def sweep(now: datetime) -> int:
    """Start a sender for every destination that has due messages and none here yet.

    Does not wait for them. Returns how many were started.
    """
    died = "the sender died during the last attempt; it may have arrived"
    for claimed in claims.exhausted(now):
        _record(claimed, Outcome(died, in_doubt=True))
    return sum(_senders.start(destination) for destination in claims.destinations(now))


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
                    claimed = claims.claim(destination)
                    if isinstance(claimed, Claim):
                        _record(claimed, _attempt(claimed))
                    elif claimed is None or claimed > LONGEST_WAIT_SECONDS:
                        break
                    else:
                        self._ending.wait(claimed)
        except (OperationalError, InterfaceError) as error:
            log.warning("outbox.postponed", destination=destination, error=str(error).strip())
        except Exception:
            log.exception("outbox.sender_failed", destination=destination)
        finally:
            with self._lock:
                del self._threads[destination]


_senders = Senders()


def _attempt(claimed: Claim) -> Outcome:
    message = claimed.message
    try:
        return _send(claimed)
    except PermanentFailure as failure:
        return Outcome(transports.redact(failure.reason))
    except TransientFailure as failure:
        return _again(message, failure)
    except Exception as error:
        log.error(
            "outbox.transport_broke",
            destination=message.destination,
            traceback=transports.redact(traceback.format_exc()),
        )
        reason = f"the transport broke ({type(error).__name__})"
        return _again(message, TransientFailure(reason, in_doubt=True))


def _send(claimed: Claim) -> Outcome:
    """Send it, unless an earlier attempt turns out to have arrived."""
    message, note = claimed.message, ""
    if claimed.doubtful_since is not None:
        found = transports.arrived(message, claimed.doubtful_since)
        if found:
            return Outcome(note="found there: an earlier attempt had arrived")
        if found is None:
            note = "sent again without a way to look: it may be a repeat"
            message.payload = {**message.payload, wordings.REPEAT: True}  # In this attempt only.
    transports.send(message)
    return Outcome(note=note)


def _again(message: OutboxMessage, failure: TransientFailure) -> Outcome:
    reason, doubt = transports.redact(failure.reason), failure.in_doubt
    keep_away = failure.retry_after_seconds or 0.0
    if message.attempts >= MOST_ATTEMPTS:
        last = f"{reason} (attempt {message.attempts}, the last)"
        return Outcome(last, None, keep_away, in_doubt=doubt)
    if failure.retry_after_seconds is not None:
        return Outcome(reason, failure.retry_after_seconds, keep_away, in_doubt=doubt)
    pause = backoff_seconds(message.attempts, random.random())  # noqa: S311
    return Outcome(reason, pause, in_doubt=doubt)


def _record(claimed: Claim, outcome: Outcome) -> None:
    """Write down how it went, as long as the lease lasts: what is not recorded is sent again."""
    ends = time.monotonic() + LEASE_SECONDS - 5
    while True:
        try:
            recorded = claims.record(claimed, outcome)
        except (OperationalError, InterfaceError):
            threads.forget_connection()
            if time.monotonic() > ends:
                raise
            time.sleep(RECORD_AGAIN_SECONDS)
        else:
            _tell(claimed, outcome, recorded)
            return


def _tell(claimed: Claim, outcome: Outcome, recorded: bool) -> None:
    told = {
        "message_id": claimed.message.pk,
        "event_name": claimed.message.event,
        "destination": claimed.message.destination,
        "attempt": claimed.attempt,
    }
    if not recorded:
        log.warning("outbox.lease_lost", **told)
    elif outcome.state == OutboxMessage.State.FAILED:
        log.error("outbox.failed", reason=outcome.reason, **told)
    elif outcome.reason:
        log.warning(
            "outbox.postponed", reason=outcome.reason, pause_seconds=outcome.pause_seconds, **told
        )
