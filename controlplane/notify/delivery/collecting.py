"""Collecting messages: one delayed message that names many changes.

A collecting message is an outbox row that is not due yet; further changes are added to it. Once
due, it is sent like any other, and the next change starts a new one.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from django.db.models import Max, QuerySet

from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.targets import reach

MAX_NAMED = 10
MAX_KEPT = 500
"""Maximum number of names in one message; the next one starts another message."""


def is_open(event: str, now: datetime) -> bool:
    """Return whether a message of this event is still collecting at any destination."""
    return _collecting(event, now).exists()


def add(
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
    """Add a name to the collecting message of `event` at each destination.

    Runs in the caller's transaction. A message is sent `soon` after it was created, and at least
    `apart` after the one before. Callers must be serialized, for example by a lock.
    """
    for destination in to:
        if not reach.configured(destination):
            continue
        open_one = _collecting(event, now).filter(destination=destination)
        message = open_one.select_for_update(skip_locked=True).order_by("id").last()
        if message is None or len(message.payload["switches"]) >= MAX_KEPT:
            due_at = max(now + soon, _last(event, destination, now - apart) + apart)
            _begin(event, destination, severity, path, name, said, now, due_at)
        else:
            names = [*message.payload["switches"], name]
            message.payload = {**message.payload, **_named(names)}
            message.save(update_fields=["payload"])


def _collecting(event: str, now: datetime) -> QuerySet[OutboxMessage]:
    return OutboxMessage.objects.filter(
        event=event, state="pending", attempts=0, lease_until=None, next_attempt_at__gt=now
    )


def _last(event: str, destination: str, since: datetime) -> datetime:
    """Return the time of the latest collecting message, sent or scheduled, or `since` if older."""
    same = OutboxMessage.objects.filter(event=event, destination=destination)
    waiting = same.filter(state="pending", next_attempt_at__gt=since)
    sent = same.filter(state="sent", finished_at__gt=since)
    moments = (
        waiting.aggregate(last=Max("next_attempt_at"))["last"],
        sent.aggregate(last=Max("finished_at"))["last"],
    )
    return max((moment for moment in moments if moment), default=since)


def _begin(
    event: str,
    destination: str,
    severity: str,
    path: str,
    name: str,
    said: str,
    now: datetime,
    due_at: datetime,
) -> None:
    OutboxMessage.objects.bulk_create(
        [
            OutboxMessage(
                event=event,
                event_key=f"{event}:{now.isoformat()}:{sha256(name.encode()).hexdigest()[:16]}",
                destination=destination,
                severity=severity,
                payload={**_named([name]), "first_said": said, "path": path},
                next_attempt_at=due_at,
                created_at=now,
            )
        ],
        ignore_conflicts=True,
    )


def _named(names: list[str]) -> dict[str, object]:
    """Return the facts about the names: `feature:a, feature:b and 12 more`, and the full list."""
    more = len(names) - MAX_NAMED
    shown = ", ".join(names[:MAX_NAMED])
    return {
        "count": len(names),
        "list": f"{shown} and {more} more" if more > 0 else shown,
        "switches": names,
    }
