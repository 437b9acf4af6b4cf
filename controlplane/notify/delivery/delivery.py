"""Deliver the outbox: messages of one destination in sequence, destinations in parallel.

A row is claimed in a short transaction (lease, fence, attempt) and sent outside of it; the result
is recorded only if the fence is unchanged. If a sender dies, its row is claimed again once the
lease has expired. A message that may have been delivered is looked up before it is sent again.
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
from controlplane.notify.transports import registry
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure

from . import claims
from .claims import LEASE_SECONDS, MAX_ATTEMPTS, Claim, Outcome
from .senders import Senders

FIRST_PAUSE_SECONDS = 2.0
PAUSE_GROWS_BY = 3.0
RECORD_AGAIN_SECONDS = 0.5
MIN_KEEP_AWAY_SECONDS = 1.0
PATIENCE = timedelta(hours=6)
"""Time during which attempts refused with a `Retry-After` do not count."""

log = structlog.get_logger(__name__)


def sweep(now: datetime) -> int:
    """Start to serve every destination with due messages, without waiting for the result.

    Returns the number of destinations added; those already being served don't count.
    """
    died = "the sender died during the last attempt; it may have arrived"
    for claimed in claims.exhausted(now):
        _record(claimed, Outcome(died, in_doubt=True))
    return sum(_senders.serve(destination) for destination in claims.destinations(now))


def finish(seconds: float) -> bool:
    """Stop the senders after their current message; return whether all ended within `seconds`."""
    return _senders.finish(seconds)


def backoff_seconds(attempts: int, draw: float) -> float:
    """Return a random pause in seconds: full jitter below an exponentially growing ceiling.

    `draw` is uniform in [0, 1). After Brooker, "Exponential Backoff And Jitter" (2015). The
    ceilings of 8 attempts add up to 36 minutes; later ones stay at that of the eighth.
    """
    ceiling = FIRST_PAUSE_SECONDS * PAUSE_GROWS_BY ** min(attempts - 1, MAX_ATTEMPTS - 1)
    return float(draw * ceiling)


def send_one(destination: str) -> float | None:
    """Send one message; return the seconds until the next may be sent, None if nothing is due."""
    claimed = claims.claim(destination)
    if not isinstance(claimed, Claim):
        return claimed
    _record(claimed, _attempt(claimed))
    return 0.0


_senders = Senders(send_one)


def _attempt(claimed: Claim) -> Outcome:
    message = claimed.message
    try:
        return _send(claimed)
    except PermanentFailure as failure:
        return Outcome(registry.redact(failure.reason))
    except TransientFailure as failure:
        return _again(claimed, failure)
    except (OperationalError, InterfaceError):
        threads.close_connection()
        lost = "the database could not be asked while sending; it may have arrived"
        return _again(claimed, TransientFailure(lost, in_doubt=True))
    except Exception as error:
        log.error(
            "outbox.transport_broke",
            destination=message.destination,
            traceback=registry.redact(traceback.format_exc()),
        )
        reason = f"the transport broke ({type(error).__name__})"
        return _again(claimed, TransientFailure(reason, in_doubt=True))


def _send(claimed: Claim) -> Outcome:
    """Send the message, unless an earlier attempt turns out to have been delivered."""
    message, note = claimed.message, ""
    if claimed.doubtful_since is not None:
        found = registry.find_sent(message, claimed.doubtful_since)
        if found:
            return Outcome(note="found there: an earlier attempt had arrived")
        if found is None:
            note = "sent again without a way to look: it may be a repeat"
            message.payload = {
                **message.payload,
                renderer.REPEAT: True,
            }  # Not saved.
    registry.send(message)
    return Outcome(note=note)


def _again(claimed: Claim, failure: TransientFailure) -> Outcome:
    """Return the result of an attempt that failed temporarily.

    A destination that refuses with a `Retry-After` is busy rather than broken: until a message is
    `PATIENCE` old, such attempts don't count, though the pauses grow as usual.
    """
    message, doubt = claimed.message, failure.in_doubt
    reason, asked = registry.redact(failure.reason), failure.retry_after_seconds
    keep_away = 0.0 if asked is None else max(asked, MIN_KEEP_AWAY_SECONDS)
    counts = asked is None or doubt or claimed.waited > PATIENCE
    if counts and message.attempts >= MAX_ATTEMPTS:
        last = f"{reason} (attempt {message.attempts}, the last)"
        return Outcome(last, None, keep_away, in_doubt=doubt)
    number = message.attempts if counts else claimed.attempt
    pause = max(keep_away, backoff_seconds(number, random.random()))  # noqa: S311
    return Outcome(reason, pause, keep_away, in_doubt=doubt, counts=counts)


def _record(claimed: Claim, outcome: Outcome) -> None:
    """Record the result, retrying until shortly before the lease ends, then raise.

    A message without a recorded result is sent again.
    """
    ends = time.monotonic() + LEASE_SECONDS - 5
    while True:
        try:
            recorded = claims.record(claimed, outcome)
        except (OperationalError, InterfaceError):
            threads.close_connection()
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
    elif outcome.state == OutboxMessage.State.FAILED and not claimed.is_fleeting:
        log.error("outbox.failed", reason=outcome.reason, **told)
    elif outcome.reason:
        log.warning(
            "outbox.postponed", reason=outcome.reason, pause_seconds=outcome.pause_seconds, **told
        )
