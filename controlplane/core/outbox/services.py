"""Putting messages into the outbox, in the transaction of the change they tell of."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from controlplane.core.message_templates import severity_of
from controlplane.core.outbox import router
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.wakeups import wake

MAX_KEY_LENGTH = 120


def announce(
    *,
    event: str,
    event_key: str,
    facts: Mapping[str, Any],
    now: datetime,
    scope: str = "",
    severity: str = "",
    subject: str = "",
    to: Sequence[str] | None = None,
) -> int:
    """Write one message per destination; a repeated `event_key` adds nothing.

    Destinations are those the routes give for event, scope and severity (by default that of the
    event's wording), or exactly `to`; one that no transport is configured for is left out. All
    messages about one `subject` (`episode:12`) share a thread at each destination and arrive in
    order. `facts` are plain JSON values; each transport words them in its own way. A key may be of
    any length. Returns how many destinations there were.
    """
    event_key = _short(event_key)
    severity = severity or severity_of(event)
    if to is None:
        destinations = router.get().routed(event, scope, severity, subject, now)
    else:
        destinations = router.get().reachable(to)
    OutboxMessage.objects.bulk_create(
        [
            OutboxMessage(
                event=event,
                event_key=event_key,
                destination=destination,
                subject=subject,
                severity=severity,
                payload=dict(facts),
                next_attempt_at=now,
                created_at=now,
            )
            for destination in destinations
        ],
        ignore_conflicts=True,
    )
    if destinations:
        wake("outbox")
    return len(destinations)


def _short(event_key: str) -> str:
    """The key if its column takes it, else its digest: the same for the same key."""
    if len(event_key) <= MAX_KEY_LENGTH:
        return event_key
    return f"sha256:{hashlib.sha256(event_key.encode('utf-8', 'surrogatepass')).hexdigest()}"
