"""Sender of outbox messages: one at a time per destination, destinations in parallel.

A message is claimed in a short transaction and sent outside of it. Its outcome is recorded if its
fence is unchanged. If the sender dies, the message is claimed again after its lease. A message that
may have been delivered is looked up at its destination before it is sent again.
"""

import random
import time
import traceback
from datetime import datetime, timedelta

import structlog
from django.db import InterfaceError, OperationalError

from controlplane.core import threads
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.transports import destinations
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure

from . import claims
from .claims import LEASE_SECONDS, MAX_ATTEMPTS, AttemptOutcome, ClaimedMessage
from .sender_pool import SenderPool

FIRST_PAUSE_SECONDS = 2.0
PAUSE_GROWS_BY = 3.0
RECORD_AGAIN_SECONDS = 0.5
MIN_KEEP_AWAY_SECONDS = 1.0
PATIENCE = timedelta(hours=6)
"""Age of a message up to which attempts refused with `Retry-After` don't count."""

log = structlog.get_logger(__name__)


def start_sending(now: datetime) -> int:
    """Start to send due messages, in threads; return the number of newly queued destinations."""
    died = "the sender crashed during the last attempt; the message may have been delivered"
    for claimed in claims.claim_exhausted(now):
        _record(claimed, AttemptOutcome(died, in_doubt=True))
    return sum(_pool.serve(destination) for destination in claims.due_destinations(now))


def stop_sending(seconds: float) -> bool:
    """End all sender threads after their current messages; return True if done in `seconds`."""
    return _pool.finish(seconds)


def backoff_seconds(attempts: int, draw: float) -> float:
    """Return a random pause in seconds, below an exponentially growing ceiling (full jitter).

    `draw` is uniform in [0, 1). Source: Brooker, "Exponential Backoff And Jitter" (2015). The
    ceilings of 8 attempts add up to 36 minutes; later attempts use the eighth ceiling.
    """
    ceiling = FIRST_PAUSE_SECONDS * PAUSE_GROWS_BY ** min(attempts - 1, MAX_ATTEMPTS - 1)
    return float(draw * ceiling)


def send_one(destination: str) -> float | None:
    """Send one message to a destination.

    Return the seconds until the next message may be sent, None if no message is due.
    """
    claimed = claims.claim_message(destination)
    if not isinstance(claimed, ClaimedMessage):
        return claimed
    _record(claimed, _attempt_send(claimed))
    return 0.0


_pool = SenderPool(send_one)


def _attempt_send(claimed: ClaimedMessage) -> AttemptOutcome:
    message = claimed.message
    try:
        return _send(claimed)
    except PermanentFailure as failure:
        return AttemptOutcome(destinations.redact_secrets(failure.reason))
    except TransientFailure as failure:
        return _plan_retry(claimed, failure)
    except (OperationalError, InterfaceError):
        threads.close_connection()
        lost = "the database was unavailable during sending; the message may have been delivered"
        return _plan_retry(claimed, TransientFailure(lost, in_doubt=True))
    except Exception as error:
        log.error(
            "outbox.transport_broke",
            destination=message.destination,
            traceback=destinations.redact_secrets(traceback.format_exc()),
        )
        reason = f"the transport failed ({type(error).__name__})"
        return _plan_retry(claimed, TransientFailure(reason, in_doubt=True))


def _send(claimed: ClaimedMessage) -> AttemptOutcome:
    message, note = claimed.message, ""
    if claimed.doubtful_since is not None:
        found = destinations.find_sent_message(message, claimed.doubtful_since)
        if found:
            return AttemptOutcome(note="already there: an earlier attempt was delivered")
        if found is None:
            note = "sent again without a way to check: possible duplicate"
            message.payload = {**message.payload, renderer.REPEAT: True}  # Not saved.
    destinations.send_message(message)
    return AttemptOutcome(note=note)


def _plan_retry(claimed: ClaimedMessage, failure: TransientFailure) -> AttemptOutcome:
    """Return when to retry after a temporary failure, or that the message has failed for good.

    An attempt refused with `Retry-After` counts toward the maximum only once the message is older
    than `PATIENCE`: the destination is busy, not broken.
    """
    message, doubt = claimed.message, failure.in_doubt
    reason, retry_after = destinations.redact_secrets(failure.reason), failure.retry_after_seconds
    keep_away = 0.0 if retry_after is None else max(retry_after, MIN_KEEP_AWAY_SECONDS)
    counts = retry_after is None or doubt or claimed.waited > PATIENCE
    if counts and message.attempts >= MAX_ATTEMPTS:
        last = f"{reason} (attempt {message.attempts}, the last)"
        return AttemptOutcome(last, None, keep_away, in_doubt=doubt)
    number = message.attempts if counts else claimed.attempt
    pause = max(keep_away, backoff_seconds(number, random.random()))  # noqa: S311
    return AttemptOutcome(reason, pause, keep_away, in_doubt=doubt, counts=counts)


def _record(claimed: ClaimedMessage, outcome: AttemptOutcome) -> None:
    """Record and log an attempt's outcome; retry database errors while the lease lasts."""
    ends = time.monotonic() + LEASE_SECONDS - 5
    while True:
        try:
            recorded = claims.record_outcome(claimed, outcome)
        except (OperationalError, InterfaceError):
            threads.close_connection()
            if time.monotonic() > ends:
                raise
            time.sleep(RECORD_AGAIN_SECONDS)
        else:
            break
    details = {
        "message_id": claimed.message.pk,
        "event_name": claimed.message.event,
        "destination": claimed.message.destination,
        "attempt": claimed.attempt,
    }
    if not recorded:
        log.warning("outbox.lease_lost", **details)
    elif outcome.state == OutboxMessage.State.FAILED and not claimed.is_fleeting:
        log.error("outbox.failed", reason=outcome.reason, **details)
    elif outcome.reason:
        details["pause_seconds"] = outcome.pause_seconds
        log.warning("outbox.postponed", reason=outcome.reason, **details)
