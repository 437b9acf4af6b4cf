"""Messages that wait a little and collect what happens meanwhile: one instead of many.

A collecting message is a row of the outbox that is not due yet. Whoever has more of the same adds
to it; once it is due it goes out like any other, and the next one begins.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from django.db.models import Max, QuerySet

from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.targets import reach

MAX_NAMED = 10
MAX_KEPT = 500
"""Names in one message; then the next begins."""


def is_open(event: str, now: datetime) -> bool:
    """Whether a message of this event is still collecting, anywhere."""
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
    """Name one more in the collecting messages of `event`, in the caller's transaction.

    A message goes out `soon` after it began, but not before it is `apart` from the one before.
    Callers have to follow each other, as those do that hold one lock.
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
    """When the one before goes out, or went; `since` if that was before then."""
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
    """`feature:a, feature:b and 12 more`, and all of them for programs."""
    more = len(names) - MAX_NAMED
    shown = ", ".join(names[:MAX_NAMED])
    return {
        "count": len(names),
        "list": f"{shown} and {more} more" if more > 0 else shown,
        "switches": names,
    }
