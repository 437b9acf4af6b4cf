"""Retry failed messages: set them back to pending."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.wakeups import wake

from . import digests, permission

MAX_AT_ONCE = 100


@transaction.atomic
def retry(*, message_id: int, actor: Actor, now: datetime) -> OutboxMessage:
    """Send a FAILED message again, with the full number of attempts.

    A message that may have been delivered is looked up first. Raises :class:`NotFound`, and
    :class:`Conflict` if it has not failed.
    """
    permission.require(actor)
    message = OutboxMessage.objects.select_for_update().filter(pk=message_id).first()
    if message is None:
        raise NotFound(f"There is no message {message_id}.")
    if message.state != OutboxMessage.State.FAILED:
        raise Conflict(f"Message {message_id} has not failed: it is {message.state}.")
    before = {"state": message.state, "attempts": message.attempts, "error": message.last_error}
    message.state = OutboxMessage.State.PENDING
    message.attempts = 0
    message.fence += 1
    message.lease_until = None
    message.next_attempt_at = now
    message.finished_at = None
    message.discarded_at, message.discarded_by = None, ""
    message.save()
    audit.record(
        actor=actor,
        action="outbox.retried",
        target=f"outbox:{message.pk}",
        before=before,
        after={"state": message.state, "event": message.event, "to": message.destination},
        now=now,
    )
    wake("outbox")
    return message


@transaction.atomic
def retry_all(*, destination: str, actor: Actor, now: datetime) -> tuple[int, int]:
    """Send the oldest FAILED messages of a destination again, at most `MAX_AT_ONCE`.

    Returns the number sent again and the number of FAILED ones left. Members of a digest are sent
    with it. Raises :class:`Conflict` if none has failed.
    """
    permission.require(actor)
    failed = OutboxMessage.objects.filter(
        destination=destination, state="failed", discarded_at__isnull=True
    ).exclude(pk__in=digests.to_be_told(destination))
    rows = failed.select_for_update().order_by("id")[:MAX_AT_ONCE]
    ids = [row.pk for row in rows]
    if not ids:
        raise Conflict("No message to this destination has failed; there is nothing to retry.")
    OutboxMessage.objects.filter(pk__in=ids).update(
        state=OutboxMessage.State.PENDING,
        attempts=0,
        fence=F("fence") + 1,
        lease_until=None,
        next_attempt_at=now,
        finished_at=None,
    )
    left = failed.count()
    audit.record(
        actor=actor,
        action="outbox.retried",
        target="outbox",
        after={"messages": ids, "left": left},
        now=now,
    )
    wake("outbox")
    return len(ids), left
