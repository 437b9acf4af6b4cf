"""Service that writes messages to the outbox, in the transaction of the reported change."""

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
    """Write an event's messages, one per destination, and return the number of destinations.

    The destinations are `to` or, by default, those of the routes for the event, scope and severity
    (by default that of the event's template). Destinations without a configured transport are left
    out. Messages about one `subject` (`episode:12`) share a thread at each destination and are
    delivered in order. `facts` are JSON values. A repeated `event_key` adds nothing.
    """
    if len(event_key) > MAX_KEY_LENGTH:
        digest = hashlib.sha256(event_key.encode("utf-8", "surrogatepass"))
        event_key = f"sha256:{digest.hexdigest()}"
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
