"""Service that writes messages to the outbox, in the transaction of the reported change."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from controlplane.core.message_templates import severity_of
from controlplane.core.outbox import router
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.wakeups import wake

MAX_KEY_LENGTH = 120
T = TypeVar("T")


def announce(
    *,
    event: str,
    event_key: str,
    facts: Mapping[str, Any],
    now: datetime,
    scope: str = "",
    severity: str = "",
    subject: str = "",
    resource: str = "",
    to: Sequence[str] | None = None,
) -> int:
    """Write an event's messages, one per destination, and return the number of destinations.

    The destinations are `to` or, by default, those of the routes for the event, scope and severity
    (by default that of the event's template), and the channels of the team that owns the `resource`
    (`segment:finance`). Destinations without a configured transport are left out. Messages about
    one `subject` (`episode:12`) share a thread at each destination and are delivered in order.
    `facts` are JSON values. A repeated `event_key` adds nothing.
    """
    if len(event_key) > MAX_KEY_LENGTH:
        digest = hashlib.sha256(event_key.encode("utf-8", "surrogatepass"))
        event_key = f"sha256:{digest.hexdigest()}"
    severity = severity or severity_of(event)
    if to is None:
        destinations = router.get().routed(event, scope, severity, subject, resource, now)
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


def announce_together(
    items: Sequence[T],
    *,
    resource_of: Callable[[T], str],
    facts_of: Callable[[Sequence[T]], Mapping[str, Any]],
    event: str,
    event_key: str,
    now: datetime,
    severity: str = "",
    subject: str = "",
    to: Sequence[str] | None = None,
) -> int:
    """Announce many items in one message; return the number of destinations.

    Other channels of the teams that own items get the message about these items alone;
    `resource_of` returns the resource of an item. See :func:`announce` for the arguments.
    """
    severity = severity or severity_of(event)
    if to is None:
        to = router.get().routed(event, "", severity, subject, "", now)
    resources = sorted({resource_of(item) for item in items})
    channels = router.get().owner_channels(event, severity, resources, now)
    parts: dict[str, list[T]] = defaultdict(list)
    for item in items:
        for destination in channels.get(resource_of(item), ()):
            if destination not in to:
                parts[destination].append(item)
    count = 0
    for destinations, part in [(to, items), *(([one], parts[one]) for one in sorted(parts))]:
        count += announce(
            event=event,
            event_key=event_key,
            facts=facts_of(part),
            now=now,
            severity=severity,
            subject=subject,
            to=destinations,
        )
    return count
