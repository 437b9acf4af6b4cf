"""Services that retry or discard failed messages. Discarded messages stay on record."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from controlplane.core import authority
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.wakeups import wake

from . import digests

MAX_AT_ONCE = 100
SCOPES = ("switches:write", "dlq:write")
"""Scopes that allow a retry or discard; the actor needs any one of them."""


@transaction.atomic
def retry_message(*, message_id: int, actor: Actor, now: datetime) -> OutboxMessage:
    """Send a FAILED message again, with the full number of attempts.

    If it may have been delivered, it is first looked up at the destination. Raises
    :class:`NotFound`, and :class:`Conflict` if the message has not failed.
    """
    _require_scope(actor)
    message = _lock_failed(message_id)
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
def retry_destination(*, destination: str, actor: Actor, now: datetime) -> tuple[int, int]:
    """Send the oldest FAILED messages of a destination again, at most `MAX_AT_ONCE`.

    Return the number of messages that are sent again, and the number of FAILED messages left. A
    digest is sent again in place of its members. Raises :class:`Conflict` if no message has failed.
    """
    _require_scope(actor)
    failed = OutboxMessage.objects.filter(
        destination=destination, state="failed", discarded_at__isnull=True
    ).exclude(pk__in=digests.list_digested(destination))
    rows = failed.select_for_update().order_by("id")[:MAX_AT_ONCE]
    ids = [row.pk for row in rows]
    if not ids:
        raise Conflict("No messages to this destination have failed.")
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


@transaction.atomic
def discard_message(*, message_id: int, reason: str, actor: Actor, now: datetime) -> OutboxMessage:
    """Discard a FAILED message; if it is a digest, also discard its members.

    Raises :class:`InvalidInput` without a reason, :class:`NotFound`, and :class:`Conflict` if the
    message has not failed or is already discarded.
    """
    _require_scope(actor)
    if not reason.strip():
        raise InvalidInput({"reason": ["Enter why it doesn't need to be delivered."]})
    message = _lock_failed(message_id)
    if message.discarded_at is not None:
        raise Conflict(f"Message {message_id} is already discarded.")
    message.discarded_at, message.discarded_by = now, actor.label
    message.save(update_fields=["discarded_at", "discarded_by"])
    members = digests.lock_failed_members(message)
    OutboxMessage.objects.filter(pk__in=members).update(discarded_at=now, discarded_by=actor.label)
    audit.record(
        actor=actor,
        action="outbox.discarded",
        target=f"outbox:{message.pk}",
        reason=reason.strip(),
        before={"state": message.state, "error": message.last_error},
        after={"event": message.event, "to": message.destination, "with": members},
        now=now,
    )
    return message


def _lock_failed(message_id: int) -> OutboxMessage:
    message = OutboxMessage.objects.select_for_update().filter(pk=message_id).first()
    if message is None:
        raise NotFound(f"There is no message {message_id}.")
    if message.state != OutboxMessage.State.FAILED:
        raise Conflict(f"Message {message_id} has not failed: it is {message.state}.")
    return message


def _require_scope(actor: Actor) -> None:
    if not any(actor.may(scope) for scope in SCOPES):
        actor.require(SCOPES[0])
    authority.require_in_limits(actor)
