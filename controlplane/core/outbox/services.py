"""Putting messages into the outbox, in the transaction of the change they tell of."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from controlplane.core.message_templates import incident_action_of, severity_of
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.transports import registry
from controlplane.core.targets import reach, routing
from controlplane.core.wake import wake

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
    wanted = _routed(event, scope, severity, subject, now) if to is None else to
    reaches = reach.configured if to is None else registry.reaches
    destinations = [destination for destination in wanted if reaches(destination)]
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


def _routed(event: str, scope: str, severity: str, subject: str, now: datetime) -> list[str]:
    found = routing.routed(event, scope, severity, now)
    if subject and incident_action_of(event) != "trigger":
        found += routing.incident_followers([subject]).get(subject, [])
    return found


def _short(event_key: str) -> str:
    """The key if its column takes it, else its digest: the same for the same key."""
    if len(event_key) <= MAX_KEY_LENGTH:
        return event_key
    return f"sha256:{hashlib.sha256(event_key.encode('utf-8', 'surrogatepass')).hexdigest()}"
