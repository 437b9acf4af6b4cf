"""Skips obsolete updates: of several delayed updates about a subject, only the newest is sent.

A skipped message gets the state SUPERSEDED. The message that replaces it states the number of
messages it replaces. Webhooks get every message, because programs may count them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef

from controlplane.core.message_templates import MESSAGE_TEMPLATES
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.transports import destinations

MIN_WAIT = timedelta(minutes=1)
"""Minimum age of a message that may be skipped."""
MAX_AT_ONCE = 1000


def skip_obsolete(message: OutboxMessage, now: datetime) -> bool:
    """Skip pending updates about the message's subject that a later update replaces.

    Earlier ones than `message` are left alone. Return True if `message` itself was skipped.
    """
    if not _may_be_superseded(message) or now - message.created_at < MIN_WAIT:
        return False
    tried = Attempt.objects.filter(message=OuterRef("pk"))
    rows = OutboxMessage.objects.filter(
        ~Exists(tried),
        destination=message.destination,
        subject=message.subject,
        state="pending",
        attempts=0,
        lease_until__isnull=True,
        id__gte=message.pk,
    )
    waiting = list(rows.select_for_update(skip_locked=True).order_by("id")[:MAX_AT_ONCE])
    found = find_obsolete(waiting)
    for newer, left_out in found.items():
        OutboxMessage.objects.filter(pk__in=[old.pk for old in left_out]).update(
            state=OutboxMessage.State.SUPERSEDED,
            finished_at=now,
            fence=F("fence") + 1,
            last_error=f"not sent: message {newer.pk} has the newer state",
        )
        earlier = [one.payload.get(renderer.LEFT_OUT, 0) for one in (newer, *left_out)]
        newer.payload = {**newer.payload, renderer.LEFT_OUT: len(left_out) + sum(earlier)}
        newer.save(update_fields=["payload"])
    return any(message in left_out for left_out in found.values())


def find_obsolete(
    waiting: Sequence[OutboxMessage],
) -> Mapping[OutboxMessage, Sequence[OutboxMessage]]:
    """Return the obsolete ones of these messages, by the newer message that replaces them.

    `waiting` holds the messages about one subject, oldest first. A message is replaced by the next
    message whose event supersedes it and which isn't obsolete itself.
    """
    kept: list[OutboxMessage] = []
    found = defaultdict[OutboxMessage, list[OutboxMessage]](list)
    for message in reversed(waiting):
        by = _superseded_by(message)
        newer = next((one for one in reversed(kept) if one.event in by), None)
        if newer is not None and _may_be_superseded(message):
            found[newer].append(message)
        else:
            kept.append(message)
    return found


def _superseded_by(message: OutboxMessage) -> frozenset[str]:
    template = MESSAGE_TEMPLATES.get(message.event)
    return template.superseded_by if template else frozenset()


def _may_be_superseded(message: OutboxMessage) -> bool:
    return bool(
        _superseded_by(message)
        and message.subject
        and message.severity != "critical"
        and not destinations.transport_for(message.destination).takes_every_event
    )
