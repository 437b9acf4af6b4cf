"""Discard failed messages: they stay on record and need no more action."""

from datetime import datetime

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.outbox.models import OutboxMessage

from . import digests, permission


@transaction.atomic
def discard(*, message_id: int, reason: str, actor: Actor, now: datetime) -> OutboxMessage:
    """Discard a FAILED message with a reason; the members of a digest are discarded with it.

    Raises :class:`InvalidInput` without a reason, :class:`NotFound`, and :class:`Conflict` if it
    has not failed or is already discarded.
    """
    permission.require(actor)
    if not reason.strip():
        raise InvalidInput({"reason": ["Say in a few words why it need not arrive."]})
    message = OutboxMessage.objects.select_for_update().filter(pk=message_id).first()
    if message is None:
        raise NotFound(f"There is no message {message_id}.")
    if message.state != OutboxMessage.State.FAILED:
        raise Conflict(f"Message {message_id} has not failed: it is {message.state}.")
    if message.discarded_at is not None:
        raise Conflict(f"Message {message_id} is discarded already.")
    message.discarded_at, message.discarded_by = now, actor.label
    message.save(update_fields=["discarded_at", "discarded_by"])
    members = digests.failed_members(message)
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
