"""Delayed messages, each of which collects the names of several changes and is sent once.

Such a message is an outbox row that is not due yet. Changes are added to it until it is due; the
next change creates a new message.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from django.db.models import Max, QuerySet

from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.targets import reach

MAX_NAMED = 10
MAX_KEPT = 500
"""Most names in one message; the next name starts another message."""


def is_open(event: str, now: datetime) -> bool:
    """Return True if a message of `event`, to any destination, still collects changes."""
    return _open_messages(event, now).exists()


def add_change(
    name: str,
    said: str,
    *,
    event: str,
    to: Sequence[str],
    severity: str,
    path: str,
    now: datetime,
    soon: timedelta,
    apart: timedelta,
) -> None:
    """Add a change's name to the collecting message of `event` for each destination in `to`.

    If there is none, a message with the text `said` and a link to the page `path` is created. It is
    sent after the time `soon`, and at least `apart` after the destination's previous message. Call
    this in a transaction with a lock that serializes all such calls.
    """
    for destination in to:
        if not reach.is_configured(destination):
            continue
        open_one = _open_messages(event, now).filter(destination=destination)
        message = open_one.select_for_update(skip_locked=True).order_by("id").last()
        if message is None or len(message.payload["switches"]) >= MAX_KEPT:
            due_at = max(now + soon, _latest_time(event, destination, now - apart) + apart)
            digest = sha256(name.encode()).hexdigest()[:16]
            message = OutboxMessage(
                event=event,
                event_key=f"{event}:{now.isoformat()}:{digest}",
                destination=destination,
                severity=severity,
                payload={**_list_names([name]), "first_said": said, "path": path},
                next_attempt_at=due_at,
                created_at=now,
            )
            OutboxMessage.objects.bulk_create([message], ignore_conflicts=True)
        else:
            names = [*message.payload["switches"], name]
            message.payload = {**message.payload, **_list_names(names)}
            message.save(update_fields=["payload"])


def _open_messages(event: str, now: datetime) -> QuerySet[OutboxMessage]:
    return OutboxMessage.objects.filter(
        event=event, state="pending", attempts=0, lease_until=None, next_attempt_at__gt=now
    )


def _latest_time(event: str, destination: str, since: datetime) -> datetime:
    """Return the time of the last message of `event` to the destination, sent or still to be sent.

    Return `since` if that is later.
    """
    same = OutboxMessage.objects.filter(event=event, destination=destination)
    waiting = same.filter(state="pending", next_attempt_at__gt=since)
    sent = same.filter(state="sent", finished_at__gt=since)
    moments = (
        waiting.aggregate(last=Max("next_attempt_at"))["last"],
        sent.aggregate(last=Max("finished_at"))["last"],
    )
    return max((moment for moment in moments if moment), default=since)


def _list_names(names: list[str]) -> dict[str, object]:
    """Return facts for a message: the names' number, a text `a, b and 12 more`, and all names."""
    more = len(names) - MAX_NAMED
    shown = ", ".join(names[:MAX_NAMED])
    return {
        "count": len(names),
        "list": f"{shown} and {more} more" if more > 0 else shown,
        "switches": names,
    }
